//! Leases and epochs: renewing, giving back, beginning attempts, late successes.

use std::time::Duration;

use saga_core::store::{Changes, Condition, Lease, Miss, Postponed, Records, Work, WorkId, WorkRef};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Bench, HOUR};
use crate::harness::StoreHarness;

/// So many days of 24 hours.
const CENTURY: Duration = Duration::from_hours(36_500 * 24);

fn stale(work: WorkRef) -> WorkRef {
    WorkRef { epoch: work.epoch - 1, ..work }
}

pub(crate) async fn a_renewed_lease_lasts<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let short = bench.short_lease().await?;
    let claimed = bench.claim_one(short).await?;
    let renewed = bench.store.renew(&[claimed.work], Lease { ttl: HOUR, ..short }).await?;
    ensure_eq!(renewed, [true], "whether the row is still held");
    bench.outlast_lease().await;
    let taken = bench.claim(bench.lease().await?, 10).await?.work;
    ensure!(taken.is_empty(), "a renewed lease was taken when the first would have ended: {taken:?}");
    Ok(())
}

pub(crate) async fn renewing_answers_for_each_row_in_order<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for key in ["k-1", "k-2"] {
        bench.start(key).await?;
    }
    let lease = bench.lease().await?;
    let work = bench.claim(lease, 10).await?.work;
    let absent = WorkRef { id: WorkId(bench.id().await?), epoch: 1 };
    let asked = [stale(work[0].work), work[1].work, absent, work[0].work];
    let renewed = bench.store.renew(&asked, lease).await?;
    ensure_eq!(renewed, [false, true, false, true], "a stale epoch, a held row, no row, a held row");
    Ok(())
}

pub(crate) async fn a_lost_row_cannot_be_renewed<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let short = bench.short_lease().await?;
    let lost = bench.claim_one(short).await?;
    bench.outlast_lease().await;
    let taken = bench.claim_one(bench.lease().await?).await?;
    ensure!(taken.work.epoch > lost.work.epoch, "the epoch did not grow: {:?} then {:?}", lost.work, taken.work);
    ensure_eq!(bench.store.renew(&[lost.work], short).await?, [false], "whether a lost row was renewed");
    ensure_eq!(bench.store.renew(&[taken.work], bench.lease().await?).await?, [true], "whether the taker renewed");
    Ok(())
}

pub(crate) async fn a_row_that_was_given_back_is_free<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let work = bench.claim_one(bench.lease().await?).await?.work;
    ensure_eq!(bench.store.release_work(&[work]).await?, [true], "whether the row was freed");
    let again = bench.claim_one(bench.lease().await?).await?;
    ensure!(!again.recovered, "a row that was given back is suspect");
    ensure_eq!(again.attempts, 0, "what giving back counts");
    Ok(())
}

pub(crate) async fn giving_back_raises_the_epoch<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let work = bench.claim_one(bench.lease().await?).await?.work;
    bench.store.release_work(&[work]).await?;
    let applied = bench.store.record(vec![begun.with_work(work).done(1)]).await?;
    ensure!(
        matches!(&applied[..], [Err(Miss::Work(id))] if *id == work.id),
        "a row was finished with the epoch under which it had been given back: {applied:?}"
    );
    ensure_eq!(bench.store.release_work(&[work]).await?, [false], "whether it was given back a second time");
    ensure!(!bench.store.begin_attempt(work, 1).await?, "an attempt began on a row that was given back");
    Ok(())
}

pub(crate) async fn giving_back_answers_for_each_row_in_order<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for key in ["k-1", "k-2", "k-3"] {
        bench.start(key).await?;
    }
    let work = bench.claim(bench.lease().await?, 10).await?.work;
    let absent = WorkRef { id: WorkId(bench.id().await?), epoch: 1 };
    let asked = [work[2].work, stale(work[0].work), absent, work[1].work];
    ensure_eq!(bench.store.release_work(&asked).await?, [true, false, false, true], "which rows were freed");
    let claimed = bench.claim(bench.lease().await?, 10).await?.work;
    ensure_eq!(claimed.len(), 2, "the rows that were freed");
    Ok(())
}

pub(crate) async fn a_first_epoch_can_be_given_back<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut saga = bench.new_saga(&saga_core::key::Tenant::default(), "k-1").await?;
    saga.commands[0].lease = Some(bench.lease().await?);
    let work = WorkRef { id: saga.commands[0].id, epoch: 1 };
    bench.start_new(saga).await?;
    ensure_eq!(bench.store.release_work(&[work]).await?, [true], "whether a row that was inserted leased was freed");
    let claimed = bench.claim_one(bench.lease().await?).await?;
    ensure!(claimed.work.epoch > 2, "the epoch grew by giving back and by claiming, to {}", claimed.work.epoch);
    Ok(())
}

pub(crate) async fn an_attempt_is_written_down_before_it_runs<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let work = bench.claim_one(bench.lease().await?).await?.work;
    ensure!(bench.store.begin_attempt(work, 1).await?, "the row is there, and no attempt could begin");
    ensure!(bench.store.begin_attempt(work, 2).await?, "no second attempt could begin");
    ensure!(bench.store.begin_attempt(work, 2).await?, "the second attempt could not be written down again");
    ensure!(!bench.store.begin_attempt(stale(work), 3).await?, "an attempt began under an old epoch");
    let absent = WorkRef { id: WorkId(bench.id().await?), epoch: 1 };
    ensure!(!bench.store.begin_attempt(absent, 1).await?, "an attempt began on no row");
    bench.store.release_work(&[work]).await?;
    let bench = bench.reopen().await?;
    ensure_eq!(bench.claim_one(bench.lease().await?).await?.attempts, 2, "the attempts behind a reopening");
    Ok(())
}

pub(crate) async fn a_late_success_is_kept_on_the_row<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let short = bench.short_lease().await?;
    bench.claim_one(short).await?;
    bench.outlast_lease().await;
    // Another process owns the row when the first owner reports.
    let second = bench.claim_one(bench.lease().await?).await?;
    ensure!(bench.store.note_late(begun.work.id, b"paid").await?, "the row is there, and the success was not kept");
    ensure_eq!(bench.store.release_work(&[second.work]).await?, [true], "whether the epoch is still the taker's");
    let bench = bench.reopen().await?;
    let third = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(third.late.as_deref(), Some(&b"paid"[..]), "the late success that the next owner gets");
    Ok(())
}

pub(crate) async fn a_late_success_bars_a_decision_that_did_not_see_it<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let work = bench.claim_one(bench.lease().await?).await?.work;
    bench.store.note_late(work.id, b"paid").await?;
    let begun = begun.with_work(work);
    let blind = Changes { finished: vec![(work, Condition::NotLate)], ..begun.done(1) };
    let applied = bench.store.record(vec![blind]).await?;
    let [Err(Miss::Late { work: row, output })] = &applied[..] else {
        return Err(Failed(format!("expected the late success to be told, got {applied:?}")));
    };
    ensure_eq!((*row, &output[..]), (work.id, &b"paid"[..]), "the late success");
    ensure_eq!(bench.saga(&begun).await?.version, 1, "the version behind a miss");
    bench.apply(begun.done(1)).await
}

pub(crate) async fn without_a_late_success_the_condition_holds<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.apply(Changes { finished: vec![(begun.work, Condition::NotLate)], ..begun.done(1) }).await?;
    ensure!(!bench.store.note_late(begun.work.id, b"paid").await?, "a success was noted on a row that is gone");
    Ok(())
}

pub(crate) async fn a_postponed_row_waits_and_remembers<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let work = bench.claim_one(bench.lease().await?).await?.work;
    let lease = bench.harness.timing().lease;
    // What waits for a person is put off for as long as one may take.
    let postponed = Postponed { work, due_in: CENTURY, attempts: 3, in_doubt: true, error: Some("no answer".into()) };
    bench.apply(Changes { postponed: vec![postponed.clone()], ..Changes::default() }).await?;
    let status = bench.whole(&begun).await?.work.remove(0);
    ensure_eq!((status.attempts, status.error.as_deref()), (3, Some("no answer")), "what the row remembers");
    ensure_eq!((status.work, status.in_doubt), (work, true), "the row, its epoch and its doubt");
    ensure!(status.retrying_since.is_some(), "a row whose attempt failed is not shown as retrying");
    ensure!(bench.claim(bench.lease().await?, 10).await?.work.is_empty(), "a postponed row was claimed at once");
    // It keeps its epoch, so the same owner may postpone it again.
    let sooner = Postponed { due_in: lease, error: None, ..postponed };
    bench.apply(Changes { postponed: vec![sooner], ..Changes::default() }).await?;
    bench.outlast_lease().await;
    let bench = bench.reopen().await?;
    let claimed = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!((claimed.attempts, claimed.in_doubt), (3, true), "what the next owner gets");
    ensure!(!claimed.recovered, "a postponed row is suspect");
    ensure!(
        claimed.retrying_for >= Some(lease),
        "it has been retried since the first error: {:?}",
        claimed.retrying_for
    );
    Ok(())
}

pub(crate) async fn retrying_is_counted_from_the_first_error<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let pause = bench.harness.timing().lease;
    let postponed = |error: &str| Changes {
        postponed: vec![Postponed { error: Some(error.into()), ..begun.postponed(Duration::ZERO) }],
        ..Changes::default()
    };
    bench.apply(postponed("first")).await?;
    let since = bench.whole(&begun).await?.work[0].retrying_since;
    bench.pass(pause).await;
    bench.apply(postponed("second")).await?;
    let status = bench.whole(&begun).await?.work.remove(0);
    ensure_eq!(status.retrying_since, since, "since when its attempts have failed");
    ensure_eq!(status.error.as_deref(), Some("second"), "what the last attempt said");
    let claimed = bench.claim_one(bench.lease().await?).await?;
    ensure!(claimed.retrying_for >= Some(pause), "it has been retried for at least {pause:?}");
    Ok(())
}

pub(crate) async fn an_attempt_without_an_error_is_no_retry<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.apply(Changes { postponed: vec![begun.postponed(Duration::ZERO)], ..Changes::default() }).await?;
    let claimed = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(claimed.retrying_for, None, "for how long its attempts have failed");
    ensure_eq!(claimed.attempts, 1, "its attempts");
    Ok(())
}
