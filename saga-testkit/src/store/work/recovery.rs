//! What becomes of the work of owners that vanished.

use saga_core::store::{Changes, Lease, Members, Miss, Records, Work};

use crate::check::{Outcome, ensure, ensure_eq};
use crate::fixture::{Bench, HOUR};
use crate::harness::StoreHarness;

pub(crate) async fn an_ended_lease_is_free_and_recovered<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let short = bench.short_lease().await?;
    let first = bench.claim_one(short).await?;
    ensure!(!first.recovered, "a row without a former owner is recovered");
    bench.outlast_lease().await;
    let second = bench.claim_one(bench.lease().await?).await?;
    ensure!(second.recovered, "a row whose lease ended is not suspect");
    Ok(())
}

pub(crate) async fn the_work_of_a_member_that_left_is_free_and_suspect<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let lease = bench.lease().await?;
    bench.claim_one(lease).await?;
    bench.store.leave(lease.owner).await?;
    let taken = bench.claim_one(bench.lease().await?).await?;
    ensure!(taken.recovered, "a row whose owner left is not suspect");
    Ok(())
}

pub(crate) async fn the_work_of_a_silent_member_is_free<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let silent = bench.store.join(bench.harness.timing().lease).await?.member;
    bench.claim(Lease { owner: silent, ttl: HOUR }, 10).await?;
    bench.outlast_lease().await;
    let taken = bench.claim_one(bench.lease().await?).await?;
    ensure!(taken.recovered, "a row whose owner died is not suspect");
    Ok(())
}

pub(crate) async fn work_leased_to_no_member_is_free<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut saga = bench.new_saga(&saga_core::key::Tenant::default(), "k-1").await?;
    let lease = bench.lease().await?;
    saga.commands[0].lease = Some(lease);
    bench.store.leave(lease.owner).await?;
    bench.start_new(saga).await?;
    bench.claim_one(bench.lease().await?).await.map(drop)
}

pub(crate) async fn suspicion_stays_until_the_row_is_finished<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let short = bench.short_lease().await?;
    bench.claim_one(short).await?;
    bench.outlast_lease().await;
    let suspect = bench.claim_one(bench.lease().await?).await?.work;
    bench.store.release_work(&[suspect]).await?;
    let again = bench.claim_one(bench.lease().await?).await?;
    ensure!(again.recovered, "a suspect row that was given back is no longer suspect");
    let postponed = begun.with_work(again.work).postponed(std::time::Duration::ZERO);
    bench.apply(Changes { postponed: vec![postponed], ..Changes::default() }).await?;
    let bench = bench.reopen().await?;
    ensure!(
        bench.claim_one(bench.lease().await?).await?.recovered,
        "a suspect row that was postponed is none any more"
    );
    Ok(())
}

pub(crate) async fn who_lost_its_row_decides_nothing<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let short = bench.short_lease().await?;
    let lost = bench.claim_one(short).await?.work;
    bench.outlast_lease().await;
    let taken = bench.claim_one(bench.lease().await?).await?.work;
    let applied = bench.store.record(vec![begun.with_work(lost).done(1)]).await?;
    ensure!(matches!(applied[..], [Err(Miss::Work(_))]), "the old owner decided: {applied:?}");
    bench.apply(begun.with_work(taken).done(1)).await
}

pub(crate) async fn an_ended_lease_without_a_new_owner_still_decides<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let short = bench.short_lease().await?;
    let work = bench.claim_one(short).await?.work;
    bench.outlast_lease().await;
    bench.store.leave(short.owner).await?;
    bench.apply(begun.with_work(work).done(1)).await
}

pub(crate) async fn work_survives_the_death_of_every_process<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.claim_one(bench.short_lease().await?).await?;
    let bench = bench.reopen().await?;
    bench.outlast_lease().await;
    let taken = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(taken.work.id, begun.work.id, "the row that the dead process held");
    ensure!(taken.recovered, "a row of a dead process is not suspect");
    Ok(())
}
