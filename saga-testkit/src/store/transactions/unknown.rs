//! Commits whose answer was lost.

use std::sync::Arc;

use saga_core::store::{Miss, Records, RetryClass, Sagas, Started, Store, StoreErrorKind, Work, WorkId};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Bench, Play, STEP};
use crate::harness::StoreHarness;

fn doubtful<H: StoreHarness>(bench: &Bench<H>, commits: bool) -> Result<Arc<H::Store>, Failed> {
    let store = bench.harness.doubtful(&bench.store, commits);
    store.map(Arc::new).ok_or_else(|| Failed("the harness says that it can lose an answer, and gave no handle".into()))
}

pub(crate) async fn a_repeated_record_finds_out<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for (key, commits) in [("k-1", true), ("k-2", false)] {
        let begun = bench.start(key).await?;
        let mut changes = begun.done(1);
        changes.messages.push(begun.message(key, 1));
        // The rows that it inserts are there already when it is repeated: it misses its work row all the same.
        changes.commands.push(begun.command(WorkId(bench.id().await?), "next"));
        let lost = doubtful(&bench, commits)?.record(vec![changes.clone()]).await;
        let class = lost.as_ref().err().map(saga_core::store::StoreError::class);
        ensure_eq!(class, Some(RetryClass::Unknown), "the class of a commit whose answer was lost");
        let recorded = bench.outcome_of(&begun, STEP).await?.is_some();
        let moved = bench.saga(&begun).await?.version == 2;
        ensure_eq!((recorded, moved), (commits, commits), "whether the changes were applied");
        let applied = bench.store.record(vec![changes]).await?;
        let is_told = if commits { matches!(applied[..], [Err(Miss::Work(_))]) } else { applied[0].is_ok() };
        ensure!(is_told, "the commit took place: {commits}; the repeated call answered {applied:?}");
        ensure_eq!(bench.saga(&begun).await?.version, 2, "the version, however often it was recorded");
    }
    Ok(())
}

pub(crate) async fn giving_back_learns_whether_a_step_committed<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for (key, commits) in [("k-1", true), ("k-2", false)] {
        let begun = bench.start(key).await?;
        let script = bench.script(vec![Play::keep(key, 1)], vec![begun.done(1)]);
        let lost = doubtful(&bench, commits)?.transact(vec![begun.claim()], Box::new(script)).await;
        let kind = lost.as_ref().err().map(|error| error.error.kind());
        ensure_eq!(kind, Some(StoreErrorKind::UnknownCommit), "how a lost answer is told");
        let freed = bench.store.release_work(&[begun.work]).await?;
        ensure_eq!(freed, [!commits], "whether the row was freed; it was finished: {commits}");
        ensure_eq!(bench.business(key).await.is_some(), commits, "whether the step's writes are there");
        ensure_eq!(bench.outcome_of(&begun, STEP).await?.is_some(), commits, "whether the record is there");
        // The owner of the row under the next epoch has barred the commit in doubt for good.
        let barred = bench.store.record(vec![begun.done(1)]).await?;
        ensure!(matches!(barred[..], [Err(Miss::Work(_))]), "the old epoch still decides: {barred:?}");
    }
    Ok(())
}

pub(crate) async fn a_repeated_start_finds_out<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for (key, commits) in [("k-1", true), ("k-2", false)] {
        let saga = bench.new_saga(&saga_core::key::Tenant::default(), key).await?;
        let lost = doubtful(&bench, commits)?.start(vec![saga.clone()]).await;
        let class = lost.as_ref().err().map(saga_core::store::StoreError::class);
        ensure_eq!(class, Some(RetryClass::Unknown), "the class of a start whose answer was lost");
        let again = bench.start_new(saga.clone()).await?;
        match &again {
            Started::AlreadyExists(row) => {
                ensure!(commits && row.id == saga.id, "the repeated start answered {again:?}");
            }
            Started::New => ensure!(!commits, "a saga that was started is new again"),
        }
        ensure_eq!(bench.claim(bench.lease().await?, 10).await?.work.len(), 1, "the commands of the saga");
    }
    Ok(())
}
