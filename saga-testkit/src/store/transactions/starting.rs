//! Sagas that are started by the transaction of their first step.

use std::sync::Arc;

use saga_core::key::Tenant;
use saga_core::store::{Changes, Claim, NewSaga, RecordedOutcome, Sagas, Started, Status, Store, WorkId};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, Play, STEP};
use crate::harness::StoreHarness;

/// A saga that is not started yet, with the claim that starts it.
async fn unborn<H: StoreHarness>(bench: &Bench<H>, key: &str) -> Result<(Begun, NewSaga, Claim), Failed> {
    unborn_of(bench, &Tenant::default(), key).await
}

/// The same in a tenant.
pub(in crate::store) async fn unborn_of<H: StoreHarness>(
    bench: &Bench<H>,
    tenant: &Tenant,
    key: &str,
) -> Result<(Begun, NewSaga, Claim), Failed> {
    let saga = bench.new_saga(tenant, key).await?;
    let begun = Begun::of(&saga, saga.commands.first().map_or(WorkId(0), |command| command.id));
    let claim = Claim { start: Some(Arc::new(saga.clone())), ..begun.claim() };
    Ok((begun, saga, claim))
}

/// What the first step records when its command has no row.
pub(in crate::store) fn done(begun: &Begun) -> Changes {
    Changes { finished: Vec::new(), ..begun.done(1) }
}

pub(crate) async fn a_saga_starts_with_its_first_step<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (begun, saga, claim) = unborn(&bench, "k-1").await?;
    let script = bench.script(vec![Play::keep("a", 1)], vec![done(&begun)]);
    let seen = script.seen();
    bench.store.transact(vec![claim], Box::new(script)).await?;
    ensure_eq!(seen().granted, [true], "the claim of a new saga");
    let bench = bench.reopen().await?;
    let whole = bench.whole(&begun).await?;
    ensure_eq!((whole.saga.id, whole.saga.version, whole.saga.status), (begun.id, 2, Status::Running), "the saga");
    ensure_eq!(whole.saga.input, saga.input, "its input");
    ensure!(whole.work.is_empty(), "commands were inserted without being asked for: {:?}", whole.work);
    ensure_eq!(bench.outcome_of(&begun, STEP).await?, Some(RecordedOutcome::Done), "the record");
    ensure_eq!(bench.business("a").await, Some(1), "what the handler wrote");
    let again = bench.start_new(saga).await?;
    ensure!(matches!(again, Started::AlreadyExists(row) if row.id == begun.id), "the key is taken now");
    Ok(())
}

pub(crate) async fn a_taken_key_is_not_granted<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let known = bench.start("k-1").await?;
    let (begun, _, claim) = unborn(&bench, "k-1").await?;
    let (other, _, free) = unborn(&bench, "k-2").await?;
    let script = bench.script(vec![Play::keep("a", 1), Play::keep("b", 2)], vec![done(&other)]);
    let seen = script.seen();
    bench.store.transact(vec![claim, free], Box::new(script)).await?;
    ensure_eq!((seen().granted, seen().ran), (vec![false, true], vec![1]), "the claims, and the handlers that ran");
    ensure_eq!(bench.business("a").await, None, "what the handler of a taken key wrote");
    let row = bench.saga(&known).await?;
    ensure_eq!((row.id, row.version), (known.id, 1), "the saga that has the key");
    ensure!(bench.store.sagas_by_id(&[begun.id]).await?.is_empty(), "a second saga of one key is there");
    Ok(())
}

pub(crate) async fn one_of_two_starts_is_granted<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (first, _, one) = unborn(&bench, "k-1").await?;
    let (_, _, two) = unborn(&bench, "k-1").await?;
    let script = bench.script(vec![Play::keep("a", 1), Play::keep("b", 2)], vec![done(&first)]);
    let seen = script.seen();
    bench.store.transact(vec![one, two], Box::new(script)).await?;
    ensure_eq!(seen().granted, [true, false], "two claims that start one key");
    ensure_eq!(bench.saga(&first).await?.id, first.id, "the saga");
    Ok(())
}

pub(crate) async fn what_fails_starts_nothing<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (begun, saga, claim) = unborn(&bench, "k-1").await?;
    let mut changes = done(&begun);
    changes.records.push(changes.records[0].clone());
    let script = bench.script(vec![Play::keep("a", 1)], vec![changes]);
    ensure!(bench.store.transact(vec![claim], Box::new(script)).await.is_err(), "one record was written twice");
    ensure!(bench.store.sagas_by_id(&[begun.id]).await?.is_empty(), "the transaction failed, and the saga is there");
    ensure_eq!(bench.business("a").await, None, "what the handler wrote");
    let started = bench.start_new(saga).await?;
    ensure!(matches!(started, Started::New), "the key is still free, and its start answered {started:?}");
    Ok(())
}

pub(crate) async fn a_saga_that_is_only_started_waits<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (begun, saga, claim) = unborn(&bench, "k-1").await?;
    let changes = Changes { commands: saga.commands.clone(), ..Changes::default() };
    let play = Play::then("a", 1, saga_core::store::HandlerVerdict::RollBack);
    bench.store.transact(vec![claim], Box::new(bench.script(vec![play], vec![changes]))).await?;
    let whole = bench.whole(&begun).await?;
    ensure_eq!((whole.saga.version, whole.saga.status), (1, Status::Running), "the saga");
    ensure_eq!(whole.saga.state, saga.state, "its state");
    ensure_eq!(bench.business("a").await, None, "what the handler wrote");
    let claimed = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(claimed.saga, begun.id, "whose command is there to be claimed");
    Ok(())
}
