//! What people do with sagas from another process than the one that works on them, on PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::Place;
use saga_core::engine::{ControlOutcome, RestartOutcome, SagaAdmin, SagaStatus};
use saga_core::store::{AuditFilter, Sagas, Status};
use saga_core::{Outcome, Output, Runtime, Saga, State, StepError, saga_step};
use saga_postgres::PostgresStore;
use sqlx::PgConnection;

/// Whether the outside world works.
#[derive(Clone, Default)]
struct Outside(Arc<AtomicBool>);

#[saga_step(no_compensation)]
async fn note(tx: &mut PgConnection, number: i64) -> Result<i64, StepError> {
    sqlx::query("SELECT 1").execute(tx).await?;
    Ok(number)
}

/// It is tried again after a moment, as often as it takes.
#[saga_step(no_compensation, retry(attempts = 1000, base = "20ms", cap = "20ms"), on_exhausted = "compensate")]
async fn call(_number: i64, State(outside): State<Outside>) -> Result<(), StepError> {
    if outside.0.load(Ordering::SeqCst) { Ok(()) } else { Err(StepError::not_sent("nobody answers")) }
}

#[saga_step]
async fn close(tx: &mut PgConnection, _number: i64, Output(noted): Output<note>) -> Result<(), StepError> {
    sqlx::query("SELECT $1::bigint").bind(noted).execute(tx).await?;
    Ok(())
}

async fn until(runtime: &Runtime<PostgresStore>, holds: impl Fn(&SagaStatus) -> bool) {
    while !holds(&runtime.status("k").await.unwrap().unwrap()) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saga_is_held_up_and_let_go_on_by_another_process() {
    let place = Place::new().await;
    let saga: Saga<PostgresStore, i64> =
        Saga::named("calls").input().step::<note>().step::<call>().step::<close>().build().unwrap();
    let outside = Outside::default();
    let runtime = Runtime::builder(place.open().await).saga(&saga).state(outside.clone()).start().await.unwrap();
    let desk = SagaAdmin::new(place.open().await).saga(&saga).actor("ann");
    let running = runtime.start(&saga, "k", 7).await.unwrap();
    until(&runtime, |status| status.steps[1].attempts > 1).await;

    assert_eq!(desk.control("k").pause("wait").await.unwrap(), ControlOutcome::Applied);
    assert_eq!(desk.control("k").pause("wait").await.unwrap(), ControlOutcome::Already);
    outside.0.store(true, Ordering::SeqCst);
    // What falls due is claimed once, put off, and then left alone.
    until(&runtime, |status| status.revision > 3 && status.steps[1].due_at.is_none()).await;
    let parked = runtime.status("k").await.unwrap().unwrap();
    for number in 0..20 {
        let other = runtime.start(&saga, format!("other-{number}"), number).await.unwrap();
        assert!(matches!(other.outcome().await.unwrap(), Outcome::Completed { .. }));
    }
    let later = runtime.status("k").await.unwrap().unwrap();
    assert_eq!((parked.revision, later.summary.status), (later.revision, Status::Paused));
    assert_eq!(runtime.store().orphaned(9).await.unwrap(), []);

    assert_eq!(desk.control("k").resume("go on").await.unwrap(), ControlOutcome::Applied);
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(desk.control("k").restart("close", "k-again", "once more").await.unwrap(), RestartOutcome::Begun);
    assert_eq!(desk.control("k").restart("close", "k-again", "once more").await.unwrap(), RestartOutcome::Already);
    let again = runtime.attach("k-again").await.unwrap();
    assert!(matches!(again.outcome().await.unwrap(), Outcome::Completed { .. }));
    let acts = runtime.admin().query().audit_log(AuditFilter::default()).await.unwrap();
    let said: Vec<&str> = acts.iter().map(|acted| acted.entry.action.as_str()).collect();
    assert_eq!(said, ["taken over", "restart", "resume", "pause"]);
    assert!(acts.iter().all(|acted| acted.entry.actor.as_deref() == Some("ann")));
    runtime.shutdown().await;
}
