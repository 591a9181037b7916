//! An undo in another service that an operator has repeated: the host answers the latest request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::{Outcome, Runtime, Saga, Service, State, StepError, saga_compensation, saga_step};
use tokio::time::{sleep, timeout};

const HOUR: Duration = Duration::from_hours(1);

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "payments", compensated)]
    pub async fn charge(cents: u64) -> Result<u64, StepError>;
}

/// Whether the bank takes charges back.
#[derive(Clone, Default)]
struct Bank(Arc<AtomicBool>);

#[saga_step(implements = contracts::charge, compensate = refund)]
async fn charge(cents: u64) -> Result<u64, StepError> {
    Ok(cents)
}

#[saga_compensation]
async fn refund(_cents: u64, State(bank): State<Bank>) -> Result<(), StepError> {
    if bank.0.load(Ordering::SeqCst) { Ok(()) } else { Err(StepError::stuck("the account is closed")) }
}

#[saga_step(no_compensation)]
async fn confirm(_cents: u64) -> Result<(), StepError> {
    Err(StepError::reject("not delivered there"))
}

async fn is_stuck(runtime: &Runtime<MemoryStore>, key: &str) -> bool {
    let status = runtime.status(key).await.unwrap();
    matches!(status.unwrap().summary.outcome, Some(Outcome::Stuck { .. }))
}

/// The operator of the caller has the undo sent again while it is stuck at its host. What becomes of it there answers the second
/// request, not the first.
#[tokio::test(start_paused = true)]
async fn the_answer_of_a_stuck_host_names_the_latest_undo() {
    let (transport, bank) = (MemoryTransport::new(), Bank::default());
    let service = Service::named("payments").host::<charge>().build().unwrap();
    let host = Runtime::builder(MemoryStore::new()).transport(transport.clone()).service(&service);
    let host = host.state(bank.clone()).start().await.unwrap();
    let saga = Saga::named("order").input::<u64>().step::<contracts::charge>().step::<confirm>().build().unwrap();
    let orders = Runtime::builder(MemoryStore::new()).transport(transport).saga(&saga);
    let orders = orders.settings(|settings| settings.service = Some("orders".to_owned())).start().await.unwrap();
    let running = orders.start(&saga, "o-1", 7).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Stuck { .. }));

    orders.admin().control("o-1").retry("the bank says it is open").await.unwrap();
    sleep(HOUR).await;
    assert!(is_stuck(&orders, "o-1").await, "the second undo is answered, too");
    orders.admin().control("o-1").retry("the other service mends it").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    bank.0.store(true, Ordering::SeqCst);
    host.admin().control("o-1>charge").retry("the account is open again").await.unwrap();
    let closed = timeout(24 * HOUR, running.closed()).await.expect("the host answered an undo that is not waited for");
    assert!(matches!(closed.unwrap(), Outcome::Compensated { .. }));
    orders.shutdown().await;
    host.shutdown().await;
}
