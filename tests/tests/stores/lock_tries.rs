//! Steps that are refused their locks on every store: which transactions try to take a lock before the step asks for it and waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::engine::SemanticLocksFilter;
use saga_core::saga::SagaBuilder;
use saga_core::store::{Claim, LockAnswer, LockRequest, Store, StoreError, TransactError, TransactionBody};
use saga_core::{Entity, Outcome, Runtime, Saga, SagaHandle, SemanticLock, State, StepContext, StepError, saga_step};
use saga_testkit::intercept::{Intercept, Intercepted};
use saga_tests::Books;
use tokio::sync::Semaphore;

/// The saga that is refused its lock.
const REFUSED: &str = "o-2";

struct Credit;

impl SemanticLock for Credit {
    const NAME: &'static str = "credit";
}

/// The orders 1 and 2 are of one account, the others have their own.
fn account(order: u32) -> Entity {
    Entity::new("account", order.max(2))
}

#[saga_step(no_compensation)]
async fn book<S: Store>(_tx: &mut S::Conn, _order: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation, lock = |order| account(*order))]
async fn book_locked<S: Store>(_tx: &mut S::Conn, _order: u32) -> Result<(), StepError> {
    Ok(())
}

/// A call outside, until the test lets it end.
#[saga_step(no_compensation, timeout = "10m")]
async fn hold(ctx: &StepContext, _order: u32, State(gate): State<Arc<Semaphore>>) -> Result<(), StepError> {
    until_open(ctx, &gate).await
}

#[saga_step(no_compensation, timeout = "10m", lock = |order| account(*order))]
async fn hold_locked(ctx: &StepContext, _order: u32, State(gate): State<Arc<Semaphore>>) -> Result<(), StepError> {
    until_open(ctx, &gate).await
}

async fn until_open(ctx: &StepContext, gate: &Semaphore) -> Result<(), StepError> {
    tokio::select! {
        _permit = gate.acquire() => Ok(()),
        () = ctx.cancelled() => Err(StepError::retry("the process ends")),
    }
}

/// A store that notes how the refused saga tries to get its lock.
#[derive(Clone)]
struct Watched<S> {
    inner: S,
    tries: Tries,
}

#[derive(Clone)]
struct Tries {
    seen: Arc<Mutex<Vec<&'static str>>>,
    /// Whether the next transaction of its command waits for the test.
    waits: Arc<AtomicBool>,
    gate: Arc<Semaphore>,
}

impl Default for Tries {
    fn default() -> Self {
        Self { seen: Arc::default(), waits: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
    }
}

impl Tries {
    /// A request that meets a lock of the database is made again, and is one.
    fn note(&self, what: &'static str) {
        let mut seen = self.seen.lock().unwrap();
        if (seen.last(), what) != (Some(&"ask"), "ask") {
            seen.push(what);
        }
    }

    fn all(&self) -> Vec<&'static str> {
        self.seen.lock().unwrap().clone()
    }
}

impl<S: Books> Intercept for Watched<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<<S as Store>::Conn>>,
    ) -> Result<(), TransactError> {
        let refused = claims.iter().find(|claim| claim.key.as_str() == REFUSED && !claim.locks.is_empty());
        if let Some(claim) = refused {
            let is_start = claim.start.is_some();
            self.tries.note(if is_start { "start" } else { "try" });
            if !is_start && self.tries.waits.swap(false, Ordering::SeqCst) {
                drop(self.tries.gate.acquire().await);
            }
        }
        self.inner.transact(claims, body).await
    }

    async fn ask_for_locks(&self, requests: Vec<LockRequest>) -> Result<Vec<LockAnswer>, StoreError> {
        if requests.iter().any(|request| request.key.as_str() == REFUSED) {
            self.tries.note("ask");
        }
        self.inner.ask_for_locks(requests).await
    }
}

type WatchedStore<S> = Intercepted<Watched<S>>;

/// A process with one worker, and a saga that has the account of the orders 1 and 2.
struct Bank<S: Books> {
    runtime: Runtime<WatchedStore<S>>,
    booking: Saga<WatchedStore<S>, u32>,
    holder: SagaHandle<WatchedStore<S>>,
    open: Arc<Semaphore>,
    tries: Tries,
    _kept: saga_tests::Kept,
}

impl<S: Books> Bank<S> {
    async fn new(booking: Saga<WatchedStore<S>, u32>, holding: Saga<WatchedStore<S>, u32>) -> Self {
        let (inner, kept) = S::fresh().await;
        let (tries, open) = (Tries::default(), Arc::new(Semaphore::new(0)));
        let store = Intercepted(Watched { inner, tries: tries.clone() });
        let runtime = Runtime::builder(store).saga(&booking).saga(&holding).state(Arc::clone(&open));
        let runtime = runtime.settings(|settings| settings.transactions_max = 1).start().await.unwrap();
        // From now on the step is known to be quick.
        completes(&runtime.start(&booking, "o-4", 4).await.unwrap()).await;
        let holder = runtime.start(&holding, "o-1", 1).await.unwrap();
        let bank = Self { runtime, booking, holder, open, tries, _kept: kept };
        bank.until_lock("o-1", true).await;
        bank
    }

    async fn semantic() -> Self {
        let lock = |order: &u32| account(*order);
        let booking = named("booking").semantic_lock::<Credit, _>(lock).step::<book>().build().unwrap();
        let holding = named("holding").semantic_lock::<Credit, _>(lock).step::<hold>().build().unwrap();
        Self::new(booking, holding).await
    }

    async fn of_steps() -> Self {
        let booking = named("booking").step::<book_locked>().build().unwrap();
        let holding = named("holding").step::<hold_locked>().build().unwrap();
        Self::new(booking, holding).await
    }

    async fn start(&self, order: u32) -> SagaHandle<WatchedStore<S>> {
        self.runtime.start(&self.booking, format!("o-{order}"), order).await.unwrap()
    }

    /// The saga begins when its row is due and is claimed, and not in the transaction that starts it.
    async fn start_later(&self, order: u32) -> SagaHandle<WatchedStore<S>> {
        let starting = self.runtime.start(&self.booking, format!("o-{order}"), order);
        starting.after(Duration::from_millis(1)).await.unwrap()
    }

    /// Waits until the first step of the saga has its lock, or has asked for it.
    async fn until_lock(&self, key: &str, is_granted: bool) {
        loop {
            let status = self.runtime.status(key).await.unwrap().unwrap();
            if status.steps[0].lock.as_ref().is_some_and(|lock| lock.granted == is_granted) {
                return;
            }
            pause().await;
        }
    }

    async fn attempts_of_refused(&self) -> Vec<u32> {
        let status = self.runtime.status(REFUSED).await.unwrap().unwrap();
        status.steps.iter().map(|step| step.attempts).collect()
    }

    /// Every saga ends, and no lock is left.
    async fn close(self, refused: SagaHandle<WatchedStore<S>>) {
        completes(&self.holder).await;
        completes(&refused).await;
        let left = self.runtime.admin().query().semantic_locks(SemanticLocksFilter::default()).await.unwrap();
        assert_eq!(left, []);
        self.runtime.shutdown().await;
    }
}

fn named<S: Store>(name: &'static str) -> SagaBuilder<S, u32> {
    Saga::named(name).input::<u32>()
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

async fn completes<S: Store>(saga: &SagaHandle<S>) {
    let outcome = saga.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
}

/// S-LOCK-4: a row has the entity. The step asks after these tries, and waits without a worker, a connection and an attempt.
async fn asks_behind<S: Books>(bank: Bank<S>, refused: SagaHandle<WatchedStore<S>>, tries: &[&str]) {
    bank.until_lock(REFUSED, false).await;
    assert_eq!(bank.tries.all(), tries);
    assert_eq!(bank.attempts_of_refused().await[0], 0);
    // There is one worker, and in SQLite one connection that writes: both are free.
    completes(&bank.start(3).await).await;
    bank.open.add_permits(1);
    bank.close(refused).await;
}

async fn a_semantic_lock_that_the_start_is_refused_is_asked_for<S: Books>() {
    let bank = Bank::<S>::semantic().await;
    let refused = bank.start(2).await;
    asks_behind(bank, refused, &["start", "ask"]).await;
}

async fn a_semantic_lock_that_a_claimed_saga_is_refused_is_asked_for<S: Books>() {
    let bank = Bank::<S>::semantic().await;
    let refused = bank.start_later(2).await;
    asks_behind(bank, refused, &["try", "ask"]).await;
}

async fn a_step_lock_that_is_refused_again_is_asked_for<S: Books>() {
    let bank = Bank::<S>::of_steps().await;
    let refused = bank.start(2).await;
    asks_behind(bank, refused, &["start", "try", "ask"]).await;
}

/// S-LOCK-10: the entity is free when the transaction takes it, and no request is stored.
async fn a_semantic_lock_that_is_free_at_the_try_is_not_asked_for<S: Books>() {
    let bank = Bank::<S>::semantic().await;
    bank.tries.waits.store(true, Ordering::SeqCst);
    let refused = bank.start_later(2).await;
    while bank.tries.all().is_empty() {
        pause().await;
    }
    bank.open.add_permits(1);
    completes(&bank.holder).await;
    bank.tries.gate.add_permits(1);
    completes(&refused).await;
    assert_eq!(bank.tries.all(), ["try"]);
    bank.close(refused).await;
}

saga_tests::on_every_store! {
    a_semantic_lock_that_the_start_is_refused_is_asked_for,
    a_semantic_lock_that_a_claimed_saga_is_refused_is_asked_for,
    a_step_lock_that_is_refused_again_is_asked_for,
    a_semantic_lock_that_is_free_at_the_try_is_not_asked_for,
}
