//! Calls that want what an open transaction holds.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{
    Changes, Claim, Condition, Miss, Records, Sagas, Started, Store, StoreError, StoreErrorKind, TransactError,
};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Act, Begun, Bench, Meeting, Play};
use crate::harness::StoreHarness;

/// Longer than any store waits for a lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes a call while the transaction of this claim is open. Answers what the call gave; nothing if it waited too long.
pub(in crate::store) async fn while_open<H: StoreHarness, T>(
    bench: &Bench<H>,
    claim: Claim,
    changes: Vec<Changes>,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<Option<Result<T, StoreError>>, Failed> {
    let meeting = Arc::new(Meeting::default());
    let script = bench.script(vec![Play::keep("a", 1).and(Act::Stay(Arc::clone(&meeting)))], changes);
    let store = Arc::clone(&bench.store);
    let open = tokio::spawn(async move { store.transact(vec![claim], Box::new(script)).await });
    meeting.entered.notified().await;
    let answer = tokio::time::timeout(PATIENCE, call).await.ok();
    meeting.go_on.notify_one();
    let committed: Result<(), TransactError> =
        open.await.map_err(|error| Failed(format!("the transaction panicked: {error}")))?;
    committed?;
    Ok(answer)
}

/// That the call gave up, and did not wait until the transaction ended.
pub(in crate::store) fn ensure_gave_up<T: std::fmt::Debug>(answer: Option<Result<T, StoreError>>) -> Outcome {
    ensure!(answer.is_some(), "the call waited for longer than {PATIENCE:?}");
    let kind = answer.and_then(Result::err).map(|error| error.kind());
    ensure_eq!(kind, Some(StoreErrorKind::Conflict), "the kind of the error of a call that met a lock");
    Ok(())
}

pub(crate) async fn a_held_row_is_waited_for_shortly<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let held = bench.start("k-1").await?;
    let held = held.with_work(bench.claim_one(bench.lease().await?).await?.work);
    let free = bench.start("k-2").await?;
    let finishes = |begun: &Begun| Changes { finished: vec![(begun.work, Condition::Held)], ..Changes::default() };
    let call = bench.store.record(vec![finishes(&free), finishes(&held)]);
    ensure_gave_up(while_open(&bench, held.claim(), vec![held.done(1)], call).await?)?;
    ensure_eq!(bench.business("a").await, Some(1), "what the step wrote");
    let again = bench.store.record(vec![finishes(&free), finishes(&held)]).await?;
    let is_right = matches!(&again[..], [Ok(()), Err(Miss::Work(work))] if *work == held.work.id);
    ensure!(is_right, "the same again, behind the transaction, answered {again:?}");
    Ok(())
}

pub(crate) async fn a_key_that_is_being_taken_is_waited_for_shortly<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let saga = bench.new_saga(&Tenant::default(), "k-1").await?;
    let (twin, other) =
        (bench.new_saga(&Tenant::default(), "k-1").await?, bench.new_saga(&Tenant::default(), "k-2").await?);
    let work = saga.commands.first().map(|command| command.id).ok_or_else(|| Failed("no command".into()))?;
    let begun = Begun::of(&saga, work);
    let claim = Claim { start: Some(Arc::new(saga)), ..begun.claim() };
    let done = Changes { finished: Vec::new(), ..begun.done(1) };
    let call = bench.store.start(vec![other.clone(), twin.clone()]);
    ensure_gave_up(while_open(&bench, claim, vec![done], call).await?)?;
    let again = bench.store.start(vec![other, twin]).await?;
    let is_right = matches!(&again[..], [Started::New, Started::AlreadyExists(row)] if row.id == begun.id);
    ensure!(is_right, "the same again, behind the transaction, answered {again:?}");
    Ok(())
}
