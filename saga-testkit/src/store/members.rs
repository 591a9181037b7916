//! Who is alive.

use saga_core::store::{Lease, Members};

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

pub(crate) async fn a_living_member_beats<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let short = bench.harness.timing().lease;
    let member = bench.store.join(HOUR).await?.member;
    ensure!(bench.store.beat(member, short).await?, "a living member's beat was answered with false");
    // The beat set its own time to live, which is shorter than the first.
    bench.outlast_lease().await;
    ensure!(!bench.store.beat(member, HOUR).await?, "a member outlived the time of its last beat");
    Ok(())
}

pub(crate) async fn a_dead_member_never_lives_again<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let dead = bench.store.join(bench.harness.timing().lease).await?.member;
    bench.outlast_lease().await;
    for _ in 0..2 {
        ensure!(!bench.store.beat(dead, HOUR).await?, "the beat of a dead member was answered with true");
    }
    bench.claim_one(Lease { owner: dead, ttl: HOUR }).await?;
    // What it leased is free at once, however long the lease.
    bench.claim_one(bench.lease().await?).await.map(drop)
}

pub(crate) async fn a_member_that_left_is_dead<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let member = bench.member().await?;
    bench.store.leave(member).await?;
    ensure!(!bench.store.beat(member, HOUR).await?, "the beat of a member that left was answered with true");
    ensure_eq!(bench.store.join(HOUR).await?.others, 0, "the members that are alive");
    Ok(())
}

pub(crate) async fn a_beat_keeps_what_was_leased<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let member = bench.store.join(HOUR).await?.member;
    bench.claim_one(Lease { owner: member, ttl: HOUR }).await?;
    bench.store.beat(member, HOUR).await?;
    let taken = bench.claim(bench.lease().await?, 10).await?.work;
    ensure!(taken.is_empty(), "the work of a living member was taken: {taken:?}");
    Ok(())
}

pub(crate) async fn members_of_an_earlier_process_are_dead<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let lease = bench.lease().await?;
    bench.claim_one(lease).await?;
    let bench = bench.reopen().await?;
    ensure!(!bench.store.beat(lease.owner, HOUR).await?, "a member of an earlier process is alive");
    let taken = bench.claim_one(bench.lease().await?).await?;
    ensure!(taken.suspect, "the work of an earlier process is not suspect");
    Ok(())
}
