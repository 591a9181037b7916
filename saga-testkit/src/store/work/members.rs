//! Who is alive.

use saga_core::store::{Lease, Members, Work};

use crate::check::{Outcome, ensure, ensure_eq};
use crate::fixture::{Bench, HOUR};
use crate::harness::StoreHarness;

pub(crate) async fn each_member_gets_a_higher_id<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let one = bench.store.join(HOUR).await?;
    let two = bench.store.join(HOUR).await?;
    ensure_eq!((one.others, two.others), (0, 1), "how many members were alive before");
    ensure!(two.member > one.member, "{:?} joined behind {:?}", two.member, one.member);
    bench.store.leave(two.member).await?;
    let bench = bench.reopen().await?;
    let three = bench.store.join(HOUR).await?;
    ensure!(three.member > two.member, "{:?} joined behind {:?}, which had left", three.member, two.member);
    Ok(())
}

pub(crate) async fn a_living_member_answers_its_heartbeat<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let short = bench.harness.timing().lease;
    let member = bench.store.join(HOUR).await?.member;
    ensure!(bench.store.heartbeat(member, short).await?, "a living member's beat was answered with false");
    // The beat set its own time to live, which is shorter than the first.
    bench.outlast_lease().await;
    ensure!(!bench.store.heartbeat(member, HOUR).await?, "a member outlived the time of its last beat");
    Ok(())
}

pub(crate) async fn a_dead_member_never_lives_again<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let dead = bench.store.join(bench.harness.timing().lease).await?.member;
    bench.outlast_lease().await;
    for _ in 0..2 {
        ensure!(!bench.store.heartbeat(dead, HOUR).await?, "the beat of a dead member was answered with true");
    }
    bench.claim_one(Lease { owner: dead, ttl: HOUR }).await?;
    // What it leased is free at once, however long the lease.
    bench.claim_one(bench.lease().await?).await.map(drop)
}

pub(crate) async fn a_member_that_left_is_dead<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let member = bench.member().await?;
    bench.store.leave(member).await?;
    ensure!(!bench.store.heartbeat(member, HOUR).await?, "the beat of a member that left was answered with true");
    ensure_eq!(bench.store.join(HOUR).await?.others, 0, "the members that are alive");
    Ok(())
}

pub(crate) async fn a_beat_keeps_what_was_leased<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let member = bench.store.join(HOUR).await?.member;
    bench.claim_one(Lease { owner: member, ttl: HOUR }).await?;
    bench.store.heartbeat(member, HOUR).await?;
    let taken = bench.claim(bench.lease().await?, 10).await?.work;
    ensure!(taken.is_empty(), "the work of a living member was taken: {taken:?}");
    Ok(())
}

pub(crate) async fn members_of_an_earlier_process_are_dead<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let lease = bench.lease().await?;
    bench.claim_one(lease).await?;
    let bench = bench.reopen().await?;
    ensure!(!bench.store.heartbeat(lease.owner, HOUR).await?, "a member of an earlier process is alive");
    let taken = bench.claim_one(bench.lease().await?).await?;
    ensure!(taken.recovered, "the work of an earlier process is not suspect");
    Ok(())
}

pub(crate) async fn a_member_that_rejoins_has_its_rows<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let former = bench.store.join(bench.harness.timing().lease).await?.member;
    let work = bench.claim_one(Lease { owner: former, ttl: HOUR }).await?.work;
    bench.outlast_lease().await;
    let joined = bench.store.rejoin(former, HOUR).await?;
    ensure!(joined.member > former, "{:?} came back as {:?}", former, joined.member);
    ensure_eq!(joined.others, 0, "the members that were alive before");
    let taken = bench.claim(bench.lease().await?, 10).await?.work;
    ensure!(taken.is_empty(), "what a member took along was free: {taken:?}");
    let lease = Lease { owner: joined.member, ttl: HOUR };
    ensure_eq!(bench.store.renew(&[work], lease).await?, [true], "whether the row has its epoch still");
    bench.apply(begun.with_work(work).done(1)).await
}

pub(crate) async fn what_was_taken_meanwhile_stays_with_its_new_owner<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for key in ["k-1", "k-2"] {
        bench.start(key).await?;
    }
    let former = bench.store.join(bench.harness.timing().lease).await?.member;
    let held = bench.claim(Lease { owner: former, ttl: HOUR }, 10).await?.work;
    bench.outlast_lease().await;
    let other = bench.lease().await?;
    let taken = bench.claim(other, 1).await?.work;
    let member = bench.store.rejoin(former, HOUR).await?.member;
    let renewed = bench.store.renew(&[held[0].work, held[1].work], Lease { owner: member, ttl: HOUR }).await?;
    let is_taken = |index: usize| taken.iter().any(|work| work.work.id == held[index].work.id);
    ensure_eq!(renewed, [!is_taken(0), !is_taken(1)], "which rows are still the member's own");
    ensure_eq!(bench.store.renew(&[taken[0].work], other).await?, [true], "whether the other one has what it took");
    // It lives with the member that has it.
    bench.store.leave(member).await?;
    ensure_eq!(bench.claim(bench.lease().await?, 10).await?.work.len(), 1, "the rows that are free again");
    Ok(())
}

pub(crate) async fn a_former_identity_is_dead<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let former = bench.member().await?;
    bench.store.rejoin(former, HOUR).await?;
    ensure!(!bench.store.heartbeat(former, HOUR).await?, "the beat of a member that came back as another was answered");
    Ok(())
}
