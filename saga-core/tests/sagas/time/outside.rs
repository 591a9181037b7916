//! Steps that note their calls and can be held up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::env::TokioEnvironment;
use saga_core::memory::MemoryStore;
use saga_core::store::{Sagas as _, Work as _};
use saga_core::{Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use tokio::sync::Notify;

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MINUTE: Duration = Duration::from_mins(1);

/// What was called, and what holds a call up.
#[derive(Clone, Default)]
pub(super) struct Outside {
    pub(super) calls: Arc<Mutex<Vec<String>>>,
    pub(super) arrived: Arc<Notify>,
    pub(super) go_on: Arc<Notify>,
}

impl Outside {
    pub(super) fn note(&self, what: &str) {
        self.calls.lock().unwrap().push(what.to_owned());
    }

    pub(super) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

#[saga_step(compensate = refund)]
pub(super) async fn charge(_order: u32, State(outside): State<Outside>) -> Result<Duration, StepError> {
    outside.note("charge");
    Ok(2 * MINUTE)
}

#[saga_compensation]
pub(super) async fn refund(
    ctx: &StepContext,
    _order: u32,
    _pause: Option<Duration>,
    State(outside): State<Outside>,
) -> Result<(), StepError> {
    outside.note(&format!("refund, since {}", ctx.failure().unwrap().message));
    Ok(())
}

#[saga_step(no_compensation, retry(attempts = 9, base = "2h", cap = "2h"), on_exhausted = "compensate")]
pub(super) async fn ask_carrier(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.note("ask");
    Err(StepError::not_sent("the service does not answer"))
}

#[saga_step(
    no_compensation,
    retry(attempts = 1_000, base = "2s", cap = "2s"),
    give_up_after = "2m",
    on_exhausted = "compensate"
)]
pub(super) async fn ask_for_a_while(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.note("ask");
    Err(StepError::not_sent("the service does not answer"))
}

/// The call is held up until the test lets it go on.
#[saga_step(compensate = call_back, timeout = "9h")]
pub(super) async fn ship(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.arrived.notify_one();
    outside.go_on.notified().await;
    outside.note("ship");
    Ok(())
}

#[saga_compensation]
pub(super) async fn call_back(
    _order: u32,
    _shipped: Option<()>,
    State(outside): State<Outside>,
) -> Result<(), StepError> {
    outside.note("call back");
    Ok(())
}

#[saga_step(no_compensation)]
pub(super) async fn refuse(_order: u32) -> Result<(), StepError> {
    Err(StepError::reject("no"))
}

#[saga_step]
pub(super) async fn thank(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.note("thank");
    Ok(())
}

pub(super) fn store() -> MemoryStore {
    MemoryStore::with_environment(Arc::new(TokioEnvironment::current().unwrap()))
}

pub(super) async fn runtime(
    store: &MemoryStore,
    saga: &Saga<MemoryStore, u32>,
    outside: &Outside,
) -> Runtime<MemoryStore> {
    Runtime::builder(store.clone())
        .settings(|set| set.poll_interval = SECOND)
        .saga(saga)
        .state(outside.clone())
        .start()
        .await
        .unwrap()
}

/// Nothing waits in the store, and no saga is forgotten.
pub(super) async fn nothing_is_left(store: &MemoryStore) {
    assert_eq!(store.backlog().await.unwrap().0, 0, "rows that wait");
    assert_eq!(store.orphaned(9).await.unwrap(), []);
}

pub(super) fn asking() -> Saga<MemoryStore, u32> {
    let saga = Saga::named("asking").input::<u32>().deadline(30 * SECOND).step::<charge>().step::<ask_carrier>();
    saga.step::<thank>().build().unwrap()
}
