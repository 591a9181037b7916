//! The server is away for longer than a process counts as alive. The processes come back with what they had.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::{Outcome, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use saga_postgres::PostgresStore;
use saga_servers::PostgresServer;
use tokio::time::{Instant, sleep};

/// How many sagas each of the two processes starts. One process calls 64 at a time, for a second each.
const SAGAS: u32 = 640;
/// Longer than `member_ttl`, which is 10 s.
const OUTAGE: Duration = Duration::from_secs(13);
/// A process that recovers its own queue one call at a time needs two minutes for as many calls as it makes at a time.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often each step key was called.
#[derive(Debug, Clone, Default)]
struct Bank(Arc<Mutex<BTreeMap<String, u32>>>);

impl Bank {
    fn called(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn called_again(&self) -> usize {
        self.0.lock().unwrap().values().filter(|calls| **calls > 1).count()
    }
}

/// Its compensation needs its output, so that an unknown outcome would be stuck. Every fifth card is declined.
#[saga_step(compensate = refund, timeout = "30s", retry(attempts = 1, base = "1s"), on_exhausted = "compensate")]
async fn charge(ctx: &StepContext, order: u32, State(bank): State<Bank>) -> Result<u32, StepError> {
    *bank.0.lock().unwrap().entry(ctx.key().to_owned()).or_default() += 1;
    sleep(Duration::from_secs(1)).await;
    if order.is_multiple_of(5) { Err(StepError::reject("card declined")) } else { Ok(order) }
}

#[saga_compensation]
async fn refund(_order: u32, _charged: u32) -> Result<(), StepError> {
    Ok(())
}

fn paying() -> Saga<PostgresStore, u32> {
    Saga::named("paying").input::<u32>().step::<charge>().build().unwrap()
}

async fn process(server: &PostgresServer, bank: &Bank) -> Runtime<PostgresStore> {
    let store = PostgresStore::connect(&server.url()).await.unwrap();
    Runtime::builder(store).saga(&paying()).state(bank.clone()).start().await.unwrap()
}

/// G5, G6: what a process has in its queue stays its own over an outage: no step is called twice, no outcome is unknown, and
/// as many calls as before are made at a time.
#[tokio::test(flavor = "multi_thread")]
async fn g5_an_outage_of_the_server_loses_no_claim() {
    let (mut server, bank) = (PostgresServer::start().await.unwrap(), Bank::default());
    let processes = [process(&server, &bank).await, process(&server, &bank).await];
    let mut sagas = Vec::new();
    for (process, from) in processes.iter().zip([0, SAGAS]) {
        let orders = (from..from + SAGAS).map(|order| (format!("order-{order}"), order));
        sagas.extend(process.start_many(&paying(), orders).await.into_iter().map(Result::unwrap));
    }
    sleep(Duration::from_millis(2_500)).await;
    server.kill().await.unwrap();
    sleep(OUTAGE).await;
    server.restart().await.unwrap();

    let (before, returned) = (bank.called(), Instant::now());
    while bank.called() < before + 128 && returned.elapsed() < PATIENCE {
        sleep(Duration::from_millis(10)).await;
    }
    let (calls, took) = (bank.called() - before, returned.elapsed());
    println!("{calls} calls began within {took:?} of the server's return; ideal are 128 within a second");
    assert!(calls >= 128, "only {calls} calls began within {took:?}");
    for (order, saga) in sagas.into_iter().enumerate() {
        let outcome = saga.outcome().await.unwrap();
        let is_right = match outcome {
            Outcome::Completed { .. } => !order.is_multiple_of(5),
            Outcome::Compensated { .. } => order.is_multiple_of(5),
            Outcome::Stuck { .. } | Outcome::Tombstone { .. } => false,
        };
        assert!(is_right, "order {order}: {outcome:?}");
    }
    assert_eq!((bank.called(), bank.called_again()), (2 * SAGAS as usize, 0), "called, and called twice");
    for process in processes {
        process.shutdown().await;
    }
}
