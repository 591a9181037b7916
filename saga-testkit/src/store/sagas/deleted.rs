//! What is recorded of a saga that a purge, or an operator, deleted since it was read.

use saga_core::store::{
    Changes, Condition, HistoryEntry, HistoryKind, Miss, RecordedOutcome, Records, SagaId, Status, WorkId,
};

use super::purge::{at_once, ended, purge};
use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, OTHER, STEP, tenant};
use crate::harness::StoreHarness;

/// A saga that has ended, and was deleted.
async fn deleted<H: StoreHarness>(bench: &Bench<H>, key: &str) -> Result<Begun, Failed> {
    let gone = ended(bench, key, Some(at_once())).await?;
    ensure_eq!(purge(bench).await?.deleted, [gone.id], "what was deleted");
    Ok(gone)
}

pub(crate) async fn a_change_of_a_deleted_saga_misses_alone<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let gone = deleted(&bench, "k-1").await?;
    let (one, other) = (bench.start("k-2").await?, bench.start("k-3").await?);
    let late = Changes {
        saga: Some(gone.advance(2, Status::Completed)),
        records: vec![gone.record(OTHER, RecordedOutcome::Done)],
        commands: vec![gone.command(WorkId(bench.id().await?), OTHER)],
        messages: vec![gone.message("o-1", 1)],
        ..Changes::default()
    };
    let applied = bench.store.record(vec![one.done(1), late.clone(), other.done(1)]).await?;
    ensure!(
        matches!(applied[..], [Ok(()), Err(Miss::NoSaga(id)), Ok(())] if id == gone.id),
        "expected applied, deleted, applied; got {applied:?}"
    );
    for begun in [&one, &other] {
        ensure_eq!(bench.saga(begun).await?.version, 2, "the version of {}", begun.key);
        ensure_eq!(bench.outcome_of(begun, STEP).await?, Some(RecordedOutcome::Done), "the record of {}", begun.key);
    }
    ensure_eq!(bench.outcome_of(&gone, OTHER).await?, None, "the record of the deleted saga");
    ensure_eq!(bench.outbox().await?, [], "the messages of the deleted saga");
    let work = bench.claim(bench.lease().await?, 10).await?.work;
    ensure!(work.is_empty(), "a command of the deleted saga was left behind: {work:?}");
    let finished = Changes { finished: vec![(gone.work, Condition::Held)], ..late };
    let applied = bench.store.record(vec![finished]).await?;
    ensure!(matches!(applied[..], [Err(Miss::Work(id))] if id == gone.work.id), "a lost row answered {applied:?}");
    Ok(())
}

/// An operator restarts a saga that is purged between the read and the commit.
pub(crate) async fn a_deleted_saga_gets_no_history<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let gone = deleted(&bench, "k-1").await?;
    let entry = |saga: SagaId| HistoryEntry {
        saga,
        step: None,
        kind: HistoryKind::Operator,
        attempt: 0,
        detail: "restart".into(),
    };
    let new = bench.new_saga(&tenant("acme"), "k-2").await?;
    let restarted = Begun::of(&new, new.commands[0].id);
    let history = vec![entry(gone.id), entry(new.id)];
    bench.apply(Changes { history, start: Some(Box::new(new)), ..Changes::default() }).await?;
    bench.apply(Changes { history: vec![entry(gone.id)], ..Changes::default() }).await?;
    ensure_eq!(bench.whole(&restarted).await?.history.len(), 1, "the entries of the saga that was started");
    bench.apply(Changes { history: vec![entry(restarted.id)], ..Changes::default() }).await?;
    ensure_eq!(bench.whole(&restarted).await?.history.len(), 2, "the entries when one more was written");
    // What was left under its id would belong to this saga.
    let mut again = bench.new_saga(&tenant("acme"), "k-3").await?;
    again.id = gone.id;
    again.commands.clear();
    let begun = Begun::of(&again, gone.work.id);
    bench.start_new(again).await?;
    ensure_eq!(bench.whole(&begun).await?.history.len(), 0, "the entries of the deleted saga");
    Ok(())
}
