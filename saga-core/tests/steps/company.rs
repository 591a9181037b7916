//! Steps that fail only where others run in their transaction.
#![cfg(feature = "macros")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Outcome, Runtime, Saga, Settings, State, StepError, saga_step};

/// The transaction that has a temporary table, and how many handlers were called.
#[derive(Clone, Default)]
struct Server(Arc<(AtomicU64, AtomicU32)>);

/// It makes a temporary table, which one transaction can have once.
#[saga_step(no_compensation, retry(attempts = 2, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn sort_orders(conn: &mut MemoryConn, _order: u32, State(server): State<Server>) -> Result<(), StepError> {
    server.0.1.fetch_add(1, Ordering::SeqCst);
    let transaction = conn.transaction() + 1;
    if server.0.0.swap(transaction, Ordering::SeqCst) == transaction {
        return Err(StepError::retry("relation \"sorted\" already exists"));
    }
    Ok(())
}

/// It fails wherever it runs.
#[saga_step(no_compensation, retry(attempts = 2, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn lose_orders(_conn: &mut MemoryConn, _order: u32, State(server): State<Server>) -> Result<(), StepError> {
    server.0.1.fetch_add(1, Ordering::SeqCst);
    Err(StepError::retry("no orders"))
}

async fn outcomes(saga: &Saga<MemoryStore, u32>, server: &Server, count: u32) -> Vec<Outcome> {
    let builder = Runtime::builder(MemoryStore::new()).saga(saga).state(server.clone());
    let runtime = builder.settings(|settings: &mut Settings| settings.external_calls_max = 2).start().await.unwrap();
    let orders = (0..count).map(|order| (format!("order-{order}"), order));
    let mut outcomes = Vec::new();
    for started in runtime.start_many(saga, orders).await {
        outcomes.push(started.unwrap().outcome().await.unwrap());
    }
    runtime.shutdown().await;
    outcomes
}

fn completed(outcomes: &[Outcome]) -> usize {
    outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Completed { .. })).count()
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_only_in_company_is_done_alone() {
    let saga = Saga::named("sorting").input::<u32>().step::<sort_orders>().build().unwrap();
    let outcomes = outcomes(&saga, &Server::default(), 200).await;
    assert_eq!(completed(&outcomes), 200, "of 200");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_alone_as_well_is_given_up() {
    let saga = Saga::named("losing").input::<u32>().step::<lose_orders>().build().unwrap();
    let server = Server::default();
    let outcomes = outcomes(&saga, &server, 20).await;
    assert_eq!(completed(&outcomes), 0);
    let calls = server.0.1.load(Ordering::SeqCst);
    assert!((40..=60).contains(&calls), "two attempts of each, and one that did not count: {calls}");
}
