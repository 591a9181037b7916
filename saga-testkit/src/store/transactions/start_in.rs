//! Starting a saga in the application's own transaction.

use saga_core::key::Tenant;
use saga_core::store::{NewSaga, NewWork, Sagas, StartIn, Started, StepId, StoreErrorKind};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Bench, name};
use crate::harness::{StartInHarness, StoreHarness};

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` takes")]
pub(super) fn fault(error: crate::harness::Fault) -> Failed {
    Failed(format!("the application's own write or commit failed: {error}"))
}

async fn is_there<H: StoreHarness>(bench: &Bench<H>, key: &str) -> Result<bool, Failed> {
    Ok(bench.store.saga(&Tenant::default(), &name(key)).await?.is_some())
}

/// A saga as the application gives it: without ids.
async fn without_ids<H: StoreHarness>(bench: &Bench<H>, key: &str) -> Result<NewSaga, Failed> {
    let mut saga = bench.new_saga(&Tenant::default(), key).await?;
    saga.id.0 = 0;
    saga.commands[0].id.0 = 0;
    saga.commands[0].saga.0 = 0;
    Ok(saga)
}

pub(crate) async fn a_committed_start_is_there<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let saga = without_ids(&bench, "k-1").await?;
    let mut transaction = bench.harness.begin(&bench.store).await;
    let conn = bench.harness.conn(&mut transaction);
    bench.harness.write_business(conn, "order", 12).await.map_err(fault)?;
    let started = bench.store.start_in(bench.harness.conn(&mut transaction), saga).await?;
    ensure!(matches!(started, Started::New), "a new key answered {started:?}");
    bench.harness.commit(transaction).await.map_err(fault)?;
    ensure_eq!(bench.business("order").await, Some(12), "what the application wrote");
    let row = bench.store.saga(&Tenant::default(), &name("k-1")).await?;
    let row = row.ok_or_else(|| Failed("a saga that was started and committed is not there".into()))?;
    ensure!(row.id.0 > 0, "the saga got no id");
    let work = bench.claim_one(bench.lease().await?).await?;
    ensure!(work.work.id.0 > 0 && work.saga == row.id, "the command {work:?} is not one of saga {}", row.id.0);
    Ok(())
}

/// The state of a saga names the rows that it begins with before they have ids.
pub(crate) async fn the_ids_of_a_start_follow_each_other<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    bench.id().await?;
    let mut saga = without_ids(&bench, "k-1").await?;
    let first = saga.commands[0].clone();
    for step in ["second", "third"] {
        saga.commands.push(NewWork { step: StepId::doing(step), ..first.clone() });
    }
    let mut transaction = bench.harness.begin(&bench.store).await;
    bench.store.start_in(bench.harness.conn(&mut transaction), saga).await?;
    bench.harness.commit(transaction).await.map_err(fault)?;
    let whole = bench.store.saga_with_steps(&Tenant::default(), &name("k-1")).await?;
    let whole = whole.ok_or_else(|| Failed("a saga that was started and committed is not there".into()))?;
    for (distance, step) in (1..).zip([first.step.as_str(), "second", "third"]) {
        let row = whole.work.iter().find(|row| row.step.as_str() == step).map(|row| row.work.id.0);
        ensure_eq!(row, Some(whole.saga.id.0 + distance), "the id of a row");
    }
    Ok(())
}

pub(crate) async fn a_start_that_was_rolled_back_is_not_there<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let saga = without_ids(&bench, "k-1").await?;
    let mut transaction = bench.harness.begin(&bench.store).await;
    let conn = bench.harness.conn(&mut transaction);
    bench.harness.write_business(conn, "order", 12).await.map_err(fault)?;
    bench.store.start_in(bench.harness.conn(&mut transaction), saga).await?;
    bench.harness.roll_back(transaction).await;
    ensure_eq!(bench.business("order").await, None, "what the application wrote");
    ensure!(!is_there(&bench, "k-1").await?, "a saga whose transaction was rolled back is there");
    ensure!(bench.claim(bench.lease().await?, 10).await?.work.is_empty(), "its command is there");
    // The key is free.
    bench.start("k-1").await.map(drop)
}

pub(crate) async fn a_taken_key_does_not_end_the_transaction<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let saga = without_ids(&bench, "k-1").await?;
    let mut transaction = bench.harness.begin(&bench.store).await;
    let started = bench.store.start_in(bench.harness.conn(&mut transaction), saga).await?;
    let Started::AlreadyExists(row) = started else {
        return Err(Failed("a taken key was started again".into()));
    };
    ensure_eq!(row.id, begun.id, "the saga that holds the key");
    let conn = bench.harness.conn(&mut transaction);
    bench.harness.write_business(conn, "order", 12).await.map_err(fault)?;
    bench.harness.commit(transaction).await.map_err(fault)?;
    ensure_eq!(bench.business("order").await, Some(12), "what the application wrote behind it");
    bench.claim_one(bench.lease().await?).await.map(drop)
}

pub(crate) async fn one_key_twice_in_one_transaction<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let (one, two) = (without_ids(&bench, "k-1").await?, without_ids(&bench, "k-1").await?);
    let mut transaction = bench.harness.begin(&bench.store).await;
    bench.store.start_in(bench.harness.conn(&mut transaction), one).await?;
    let again = bench.store.start_in(bench.harness.conn(&mut transaction), two).await?;
    ensure!(matches!(again, Started::AlreadyExists(_)), "the second start in the same transaction answered {again:?}");
    bench.harness.commit(transaction).await.map_err(fault)?;
    bench.claim_one(bench.lease().await?).await.map(drop)
}

pub(crate) async fn a_bare_connection_is_refused<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let saga = without_ids(&bench, "k-1").await?;
    let mut bare = bench.harness.bare(&bench.store).await;
    let refused = bench.store.start_in(bench.harness.conn(&mut bare), saga).await;
    let kind = refused.as_ref().err().map(saga_core::store::StoreError::kind);
    ensure_eq!(kind, Some(StoreErrorKind::Misuse), "how a connection without a transaction is refused");
    drop(bare);
    ensure!(!is_there(&bench, "k-1").await?, "a saga was started without a transaction");
    Ok(())
}
