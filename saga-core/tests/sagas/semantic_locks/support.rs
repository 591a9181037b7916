//! Orders that charge an account and ship an item, and the runtime that they run on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::engine::{SagaStatus, SemanticLocksFilter};
use saga_core::env::TokioEnvironment;
use saga_core::memory::MemoryStore;
use saga_core::saga::SagaBuilder;
use saga_core::{
    Entity, Locked, Runtime, Saga, SemanticLock, Signal, State, StepError, StepPhase, saga_compensation, saga_step,
};
use serde::{Deserialize, Serialize};

/// Commits wake the sagas that get a lock: they do not wait for a poll.
pub(crate) const POLL: Duration = Duration::from_secs(10);
pub(crate) const HOUR: Duration = Duration::from_hours(1);

pub(crate) struct Credit;

impl SemanticLock for Credit {
    const NAME: &'static str = "credit";
}

pub(crate) struct Stock;

impl SemanticLock for Stock {
    const NAME: &'static str = "stock";
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Go;

impl Signal for Go {
    const NAME: &'static str = "go";
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Further;

impl Signal for Further {
    const NAME: &'static str = "further";
}

/// What the steps did, with the order that they did it for.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    pub(crate) fn note(&self, what: &str, order: &Order) {
        self.0.lock().unwrap().push(format!("{what} {}", order.id));
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: u32,
    pub(crate) account: u32,
    pub(crate) item: u32,
    pub(crate) is_refused: bool,
}

impl Order {
    pub(crate) fn of(id: u32) -> Self {
        Self { id, account: 1, item: 1, is_refused: false }
    }
}

#[saga_step(compensate = give_back)]
pub(crate) async fn charge(order: Order, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.note("charge", &order);
    Ok(())
}

#[saga_compensation]
pub(crate) async fn give_back(order: Order, _charged: Option<()>, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.note("give back", &order);
    Ok(())
}

#[saga_step(no_compensation)]
pub(crate) async fn check(order: Order, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.note("check", &order);
    if order.is_refused { Err(StepError::reject("refused")) } else { Ok(()) }
}

#[saga_step]
pub(crate) async fn ship(order: Order, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.note("ship", &order);
    if order.is_refused { Err(StepError::reject("no truck")) } else { Ok(()) }
}

#[saga_step(no_compensation)]
pub(crate) async fn note_tokens(
    order: Order,
    credit: Locked<Credit>,
    State(calls): State<Calls>,
) -> Result<u64, StepError> {
    let token = credit.token_of(&Entity::new("account", order.account)).unwrap();
    calls.note("token for", &order);
    Ok(token)
}

pub(crate) fn named() -> SagaBuilder<MemoryStore, Order> {
    Saga::named("order").input::<Order>()
}

pub(crate) fn account(order: &Order) -> Entity {
    Entity::new("account", order.account)
}

pub(crate) fn item(order: &Order) -> Entity {
    Entity::new("item", order.item)
}

pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) runtime: Runtime<MemoryStore>,
    pub(crate) calls: Calls,
}

pub(crate) async fn world(saga: &Saga<MemoryStore, Order>) -> World {
    let store = MemoryStore::with_environment(Arc::new(TokioEnvironment::current().unwrap()));
    let calls = Calls::default();
    let runtime = Runtime::builder(store.clone())
        .settings(|set| (set.poll_interval, set.member_ttl) = (POLL, 6 * POLL))
        .saga(saga)
        .state(calls.clone())
        .start()
        .await
        .unwrap();
    World { store, runtime, calls }
}

impl World {
    pub(crate) async fn status(&self, key: &str) -> SagaStatus {
        self.runtime.status(key).await.unwrap().unwrap()
    }

    /// Waits until the saga is at this step.
    pub(crate) async fn until(
        &self,
        key: &str,
        step: &str,
        is_there: impl Fn(&SagaStatus, StepPhase) -> bool,
    ) -> SagaStatus {
        loop {
            let status = self.status(key).await;
            let phase = status.steps.iter().find(|known| known.step == step).unwrap().phase;
            if is_there(&status, phase) {
                return status;
            }
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn until_it_waits_for_lock(&self, key: &str, lock: &str) -> SagaStatus {
        let waits = |status: &SagaStatus, _| {
            let step = status.steps.iter().find(|step| step.step == lock).unwrap();
            step.lock.as_ref().is_some_and(|lock| !lock.granted)
        };
        self.until(key, lock, waits).await
    }

    pub(crate) async fn until_it_has_begun(&self, key: &str, step: &str) {
        self.until(key, step, |_, phase| phase == StepPhase::Started).await;
    }

    /// Nothing of a lock is left when every saga has ended.
    pub(crate) async fn ends_without_locks(self) {
        let left = self.runtime.admin().query().semantic_locks(SemanticLocksFilter::default()).await.unwrap();
        assert_eq!(left, []);
        self.runtime.shutdown().await;
    }
}
