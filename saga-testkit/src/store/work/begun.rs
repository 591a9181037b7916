//! Whether an owner that vanished may have begun what it held.

use std::time::Duration;

use saga_core::store::{Changes, Lease, Members, Work, WorkId, WorkRef};

use crate::check::{Outcome, ensure, ensure_eq};
use crate::fixture::{Bench, HOUR};
use crate::harness::StoreHarness;

pub(crate) async fn a_row_that_was_only_claimed_has_not_begun<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let first = bench.claim_one(bench.short_lease().await?).await?;
    ensure!(!first.began, "a row without a former owner has begun");
    bench.outlast_lease().await;
    let second = bench.claim_one(bench.short_lease().await?).await?;
    ensure_eq!(
        (second.recovered, second.began),
        (true, false),
        "suspect and begun, when its owner had only claimed it"
    );
    bench.outlast_lease().await;
    let bench = bench.reopen().await?;
    let third = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!((third.recovered, third.began), (true, false), "suspect and begun, when two had only claimed it");
    Ok(())
}

pub(crate) async fn a_row_that_was_inserted_leased_counts_as_begun<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut saga = bench.new_saga(&saga_core::key::Tenant::default(), "k-1").await?;
    saga.commands[0].lease = Some(bench.short_lease().await?);
    bench.start_new(saga).await?;
    bench.outlast_lease().await;
    ensure!(bench.claim_one(bench.lease().await?).await?.began, "a row that was inserted leased has not begun");
    Ok(())
}

pub(crate) async fn a_beginning_is_remembered<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let short = bench.short_lease().await?;
    let first = bench.claim_one(short).await?.work;
    ensure_eq!(bench.store.begin(&[first], short).await?, [true], "whether the row is still held");
    bench.outlast_lease().await;
    let second = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!((second.recovered, second.began), (true, true), "suspect and begun, when its owner had begun it");
    // Those that had it later change nothing about the first.
    bench.store.release_work(&[second.work]).await?;
    let third = bench.claim_one(bench.short_lease().await?).await?;
    ensure!(third.began, "a row that had begun was given back, and has not begun");
    bench.outlast_lease().await;
    let bench = bench.reopen().await?;
    ensure!(bench.claim_one(bench.lease().await?).await?.began, "an owner that only claimed it made it not begun");
    Ok(())
}

pub(crate) async fn giving_a_waiting_row_back_makes_it_no_other<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    bench.claim_one(bench.short_lease().await?).await?;
    bench.outlast_lease().await;
    let second = bench.claim_one(bench.lease().await?).await?.work;
    bench.store.release_work(&[second]).await?;
    ensure!(!bench.claim_one(bench.lease().await?).await?.began, "a row that was not begun has begun");
    Ok(())
}

pub(crate) async fn what_a_member_has_not_begun_is_released_together<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (lease, other) = (bench.lease().await?, bench.lease().await?);
    for key in ["k-1", "k-2", "k-3"] {
        bench.start(key).await?;
    }
    let mut claimed = bench.claim(lease, 10).await?.work;
    ensure_eq!(claimed.len(), 3, "rows that were claimed");
    let begun = claimed.remove(2).work;
    ensure_eq!(bench.store.begin(&[begun], lease).await?, [true], "whether the row is still held");
    bench.start("k-4").await?;
    let of_other = bench.claim_one(other).await?.work;
    let mut saga = bench.new_saga(&saga_core::key::Tenant::default(), "k-5").await?;
    saga.commands[0].lease = Some(lease);
    let inserted = WorkRef { id: saga.commands[0].id, epoch: 1 };
    bench.start_new(saga).await?;
    ensure_eq!(bench.store.release_unbegun(lease.owner).await?, 2, "rows that were released");
    let held = bench.store.renew(&[begun, inserted], lease).await?;
    ensure_eq!(held, [true, true], "whether the row that was begun, and the one inserted leased, are still held");
    ensure_eq!(bench.store.renew(&[of_other], other).await?, [true], "whether the other member still holds its row");
    let again = bench.claim(other, 10).await?.work;
    for (former, row) in claimed.iter().zip(&again) {
        let found = (row.work, row.recovered, row.began);
        let next = WorkRef { epoch: former.work.epoch + 2, ..former.work };
        ensure_eq!(found, (next, false, false), "the released row, under the epoch behind that of its release");
    }
    ensure_eq!(again.len(), 2, "rows that are free");
    ensure_eq!(bench.store.release_unbegun(lease.owner).await?, 0, "rows that were released by the same call again");
    Ok(())
}

pub(crate) async fn an_attempt_that_ended_is_no_beginning<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let started = bench.start("k-1").await?;
    bench.claim_one(bench.short_lease().await?).await?;
    bench.outlast_lease().await;
    // It waited when its owner vanished. The next one begins it, and lives to see the end of its attempt.
    let lease = bench.lease().await?;
    let work = bench.claim_one(lease).await?.work;
    bench.store.begin(&[work], lease).await?;
    let postponed = started.with_work(work).postponed(Duration::ZERO);
    bench.apply(Changes { postponed: vec![postponed], ..Changes::default() }).await?;
    let third = bench.claim_one(bench.lease().await?).await?;
    ensure!(!third.began, "an owner began it, and none that did has vanished");
    Ok(())
}

pub(crate) async fn beginning_answers_for_each_row_in_order<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for key in ["k-1", "k-2"] {
        bench.start(key).await?;
    }
    let lease = bench.lease().await?;
    let work = bench.claim(lease, 10).await?.work;
    let stale = WorkRef { epoch: work[0].work.epoch - 1, ..work[0].work };
    let absent = WorkRef { id: WorkId(bench.id().await?), epoch: 1 };
    let asked = [stale, work[1].work, absent, work[0].work];
    let begun = bench.store.begin(&asked, lease).await?;
    ensure_eq!(begun, [false, true, false, true], "a stale epoch, a held row, no row, a held row");
    let again = bench.store.begin(&asked[1..2], lease).await?;
    ensure_eq!(again, [true], "the same call again");
    Ok(())
}

pub(crate) async fn beginning_renews_the_lease<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let short = bench.short_lease().await?;
    let work = bench.claim_one(short).await?.work;
    bench.store.begin(&[work], Lease { ttl: HOUR, ..short }).await?;
    bench.outlast_lease().await;
    let taken = bench.claim(bench.lease().await?, 10).await?.work;
    ensure!(taken.is_empty(), "what had begun was taken when its first lease would have ended: {taken:?}");
    Ok(())
}

pub(crate) async fn a_claim_can_leave_what_others_left<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let gone = bench.lease().await?;
    let held = bench.claim_one(gone).await?.work;
    bench.store.leave(gone.owner).await?;
    let free = bench.start("k-2").await?;
    let lease = bench.lease().await?;
    let left = bench.claim_if(lease, 10, false).await?;
    ensure_eq!(
        left.work.iter().map(|work| work.work.id).collect::<Vec<_>>(),
        [free.work.id],
        "rows without a former owner"
    );
    ensure_eq!(bench.store.renew(&[held], gone).await?, [true], "whether the row is as its owner left it");
    bench.store.leave(gone.owner).await?;
    let taken = bench.claim_if(lease, 10, true).await?.work;
    ensure_eq!(taken.iter().map(|work| work.work.id).collect::<Vec<_>>(), [held.id], "what an owner had left");
    Ok(())
}

pub(crate) async fn a_dead_member_takes_nothing_over<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let gone = bench.lease().await?;
    let held = bench.claim_one(gone).await?.work;
    bench.store.leave(gone.owner).await?;
    let free = bench.start("k-2").await?;
    let claimed = bench.claim(gone, 10).await?.work;
    ensure_eq!(
        claimed.iter().map(|work| work.work.id).collect::<Vec<_>>(),
        [free.work.id],
        "rows without a former owner"
    );
    ensure_eq!(bench.store.renew(&[held], gone).await?, [true], "whether the row is as its owner left it");
    Ok(())
}
