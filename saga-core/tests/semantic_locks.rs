//! Semantic locks of sagas: turns, limits, deadlocks, early ends, and what an operator does.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::engine::{CompensationCause, SagaStatus, SemanticLocksFilter, WaitKind};
use saga_core::env::TokioEnvironment;
use saga_core::memory::MemoryStore;
use saga_core::saga::{Branch, SagaBuilder};
use saga_core::store::Status;
use saga_core::{
    Entity, Locked, Outcome, Runtime, Saga, SemanticLock, Signal, State, StepError, StepPhase, SubSaga, Wait,
    saga_compensation, saga_step,
};
use serde::{Deserialize, Serialize};

/// Commits wake the sagas that get a lock: they do not wait for a poll.
const POLL: Duration = Duration::from_secs(10);
const HOUR: Duration = Duration::from_hours(1);

struct Credit;

impl SemanticLock for Credit {
    const NAME: &'static str = "credit";
}

struct Stock;

impl SemanticLock for Stock {
    const NAME: &'static str = "stock";
}

#[derive(Serialize, Deserialize)]
struct Go;

impl Signal for Go {
    const NAME: &'static str = "go";
}

#[derive(Serialize, Deserialize)]
struct Further;

impl Signal for Further {
    const NAME: &'static str = "further";
}

/// What the steps did, with the order that they did it for.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn note(&self, what: &str, order: &Order) {
        self.0.lock().unwrap().push(format!("{what} {}", order.id));
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    id: u32,
    account: u32,
    item: u32,
    is_refused: bool,
}

impl Order {
    fn of(id: u32) -> Self {
        Self { id, account: 1, item: 1, is_refused: false }
    }
}

#[saga_step(compensate = give_back)]
async fn charge(order: Order, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.note("charge", &order);
    Ok(())
}

#[saga_compensation]
async fn give_back(order: Order, _charged: Option<()>, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.note("give back", &order);
    Ok(())
}

#[saga_step(no_compensation)]
async fn check(order: Order, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.note("check", &order);
    if order.is_refused { Err(StepError::reject("refused")) } else { Ok(()) }
}

#[saga_step]
async fn ship(order: Order, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.note("ship", &order);
    if order.is_refused { Err(StepError::reject("no truck")) } else { Ok(()) }
}

#[saga_step(no_compensation)]
async fn note_tokens(order: Order, credit: Locked<Credit>, State(calls): State<Calls>) -> Result<u64, StepError> {
    let token = credit.token_of(&Entity::new("account", order.account)).unwrap();
    calls.note("token for", &order);
    Ok(token)
}

fn named() -> SagaBuilder<MemoryStore, Order> {
    Saga::named("order").input::<Order>()
}

fn account(order: &Order) -> Entity {
    Entity::new("account", order.account)
}

fn item(order: &Order) -> Entity {
    Entity::new("item", order.item)
}

struct World {
    store: MemoryStore,
    runtime: Runtime<MemoryStore>,
    calls: Calls,
}

async fn world(saga: &Saga<MemoryStore, Order>) -> World {
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
    async fn status(&self, key: &str) -> SagaStatus {
        self.runtime.status(key).await.unwrap().unwrap()
    }

    /// Waits until the saga is at this step.
    async fn until(&self, key: &str, step: &str, is_there: impl Fn(&SagaStatus, StepPhase) -> bool) -> SagaStatus {
        loop {
            let status = self.status(key).await;
            let phase = status.steps.iter().find(|known| known.step == step).unwrap().phase;
            if is_there(&status, phase) {
                return status;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn until_it_waits_for_lock(&self, key: &str, lock: &str) -> SagaStatus {
        let waits = |status: &SagaStatus, _| {
            let step = status.steps.iter().find(|step| step.step == lock).unwrap();
            step.lock.as_ref().is_some_and(|lock| !lock.granted)
        };
        self.until(key, lock, waits).await
    }

    async fn until_it_has_begun(&self, key: &str, step: &str) {
        self.until(key, step, |_, phase| phase == StepPhase::Started).await;
    }

    /// Nothing of a lock is left when every saga has ended.
    async fn ends_without_locks(self) {
        let left = self.runtime.admin().query().semantic_locks(SemanticLocksFilter::default()).await.unwrap();
        assert_eq!(left, []);
        self.runtime.shutdown().await;
    }
}

/// G5: the next saga gets the account when the first one has ended, and sees nothing of it before.
#[tokio::test(start_paused = true)]
async fn g5_a_saga_waits_until_the_one_before_has_ended() {
    let saga = named()
        .semantic_lock::<Credit, _>(|order: &Order| [account(order), Entity::new("order", order.id)])
        .step::<note_tokens>()
        .step::<charge>()
        .wait_for::<Go>(Wait::without_limit())
        .step::<ship>()
        .build()
        .unwrap();
    let world = world(&saga).await;
    let mut started = Vec::new();
    for id in 1..=3 {
        started.push(world.runtime.start(&saga, format!("o-{id}"), Order::of(id)).await.unwrap());
        if id == 1 {
            world.until_it_has_begun("o-1", "go").await;
        } else {
            world.until_it_waits_for_lock(&format!("o-{id}"), "credit").await;
        }
    }
    let status = world.status("o-3").await;
    let lock = status.steps[0].lock.as_ref().unwrap();
    assert_eq!(status.steps[0].waits_for(), Some(WaitKind::SemanticLock));
    assert_eq!(lock.waits_for.iter().map(saga_core::Key::as_str).collect::<Vec<_>>(), ["o-1", "o-2"]);
    assert_eq!(status.steps[0].attempts, 0, "waiting is no attempt");
    assert_eq!(status.steps[0].due_at, None, "it waits without a limit");
    let began = tokio::time::Instant::now();
    for id in 1..=3 {
        let key = format!("o-{id}");
        world.until_it_has_begun(&key, "go").await;
        world.runtime.signal(&key, "go", &Go).await.unwrap();
        let outcome = started.remove(0).outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    }
    assert!(began.elapsed() < POLL, "a saga waited for a poll");
    let expected: Vec<String> =
        (1..=3).flat_map(|id| ["token for", "charge", "ship"].map(|what| format!("{what} {id}"))).collect();
    assert_eq!(world.calls.all(), expected);
    world.ends_without_locks().await;
}

/// The lock lasts to the last undo, not to the failure.
#[tokio::test(start_paused = true)]
async fn g5_a_lock_lasts_until_the_last_undo() {
    let saga = named().semantic_lock::<Credit, _>(account).step::<charge>().step::<check>().step::<ship>();
    let saga = saga.build().unwrap();
    let world = world(&saga).await;
    let orders = (1..=8).map(|id| Order { is_refused: id % 2 == 1, ..Order::of(id) });
    let mut started = Vec::new();
    for order in orders {
        started.push(world.runtime.start(&saga, format!("o-{}", order.id), order).await.unwrap());
    }
    for saga in started {
        saga.outcome().await.unwrap();
    }
    // Whatever the order of the sagas, all that was done for one of them is together.
    let calls = world.calls.all();
    let of = |call: &String| call.rsplit_once(' ').unwrap().1.to_owned();
    let mut turns: Vec<String> = calls.iter().map(of).collect();
    turns.dedup();
    assert_eq!(turns.len(), 8, "{calls:?}");
    assert_eq!(calls.iter().filter(|call| call.starts_with("give back")).count(), 4, "{calls:?}");
    world.ends_without_locks().await;
}

#[tokio::test(start_paused = true)]
async fn a_saga_that_waited_long_enough_compensates() {
    let saga = named()
        .step::<charge>()
        .semantic_lock_within::<Credit, _>(HOUR, account)
        .wait_for::<Go>(Wait::without_limit())
        .build()
        .unwrap();
    let world = world(&saga).await;
    let first = world.runtime.start(&saga, "o-1", Order::of(1)).await.unwrap();
    world.until_it_has_begun("o-1", "go").await;
    let second = world.runtime.start(&saga, "o-2", Order::of(2)).await.unwrap();
    let waiting = world.until_it_waits_for_lock("o-2", "credit").await;
    assert!(waiting.steps[1].due_at.is_some(), "the status says until when it waits");
    let outcome = second.outcome().await.unwrap();
    let expected = "it waited 3600s for its semantic lock `credit`, and the saga `o-1` was in front of it";
    assert!(outcome.to_string().contains(expected), "{outcome}");
    assert_eq!(world.calls.all(), ["charge 1", "charge 2", "give back 2"]);
    world.runtime.signal("o-1", "go", &Go).await.unwrap();
    first.outcome().await.unwrap();
    world.ends_without_locks().await;
}

/// One saga takes the account first, the other one the item: the younger one turns round, and the older one goes on.
#[tokio::test(start_paused = true)]
async fn of_two_sagas_that_wait_for_each_other_the_younger_turns_round() {
    let saga = named()
        .semantic_lock::<Credit, _>(|order: &Order| if order.id == 1 { account(order) } else { item(order) })
        .step::<charge>()
        .wait_for::<Go>(Wait::without_limit())
        .semantic_lock::<Stock, _>(|order: &Order| if order.id == 1 { item(order) } else { account(order) })
        .step::<ship>()
        .build()
        .unwrap();
    for first in [1, 2] {
        let world = world(&saga).await;
        let mut started = Vec::new();
        for id in 1..=2 {
            started.push(world.runtime.start(&saga, format!("o-{id}"), Order::of(id)).await.unwrap());
            world.until_it_has_begun(&format!("o-{id}"), "go").await;
        }
        // Whichever closes the ring.
        world.runtime.signal(format!("o-{first}"), "go", &Go).await.unwrap();
        world.until_it_waits_for_lock(&format!("o-{first}"), "stock").await;
        world.runtime.signal(format!("o-{}", 3 - first), "go", &Go).await.unwrap();
        let young = started.pop().unwrap().outcome().await.unwrap();
        assert!(young.to_string().contains("deadlock with `o-1`"), "{young}");
        let old = started.pop().unwrap().outcome().await.unwrap();
        assert!(matches!(old, Outcome::Completed { .. }), "{old}");
        assert_eq!(world.calls.all(), ["charge 1", "charge 2", "give back 2", "ship 1"]);
        world.ends_without_locks().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_released_early_behind_the_pivot() {
    let saga = named()
        .semantic_lock::<Credit, _>(account)
        .step::<ship>()
        .pivot()
        .release::<Credit>()
        .wait_for::<Go>(Wait::without_limit())
        .build()
        .unwrap();
    let world = world(&saga).await;
    for id in 1..=3 {
        world.runtime.start(&saga, format!("o-{id}"), Order::of(id)).await.unwrap();
    }
    for id in 1..=3 {
        world.until_it_has_begun(&format!("o-{id}"), "go").await;
        world.runtime.signal(format!("o-{id}"), "go", &Go).await.unwrap();
    }
    for id in 1..=3 {
        world.runtime.attach(format!("o-{id}")).await.unwrap().outcome().await.unwrap();
    }
    world.ends_without_locks().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_wait_and_the_place_in_the_queue() {
    let saga = named().step::<charge>().semantic_lock::<Credit, _>(account);
    let saga = saga.wait_for::<Go>(Wait::without_limit()).build().unwrap();
    let world = world(&saga).await;
    let first = world.runtime.start(&saga, "o-1", Order::of(1)).await.unwrap();
    world.until_it_has_begun("o-1", "go").await;
    let second = world.runtime.start(&saga, "o-2", Order::of(2)).await.unwrap();
    world.until_it_waits_for_lock("o-2", "credit").await;
    let third = world.runtime.start(&saga, "o-3", Order::of(3)).await.unwrap();
    world.until_it_waits_for_lock("o-3", "credit").await;
    world.runtime.admin().control("o-2").cancel("not wanted").await.unwrap();
    let outcome = second.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }), "{outcome}");
    let waits = world.until_it_waits_for_lock("o-3", "credit").await;
    assert_eq!(waits.steps[1].lock.as_ref().unwrap().waits_for.len(), 1);
    for (key, saga) in [("o-1", first), ("o-3", third)] {
        world.until_it_has_begun(key, "go").await;
        world.runtime.signal(key, "go", &Go).await.unwrap();
        saga.outcome().await.unwrap();
    }
    world.ends_without_locks().await;
}

/// A branch that fails ends the wait of the other branch.
#[tokio::test(start_paused = true)]
async fn a_failed_branch_ends_the_wait_of_another() {
    let saga = named().parallel(|group| {
        group
            .branch(|branch: Branch<_, _>| branch.semantic_lock::<Credit, _>(account).step::<charge>())
            .branch(|branch: Branch<_, _>| branch.wait_for::<Go>(Wait::without_limit()).step::<check>())
    });
    let saga = saga.wait_for::<Further>(Wait::without_limit()).build().unwrap();
    let world = world(&saga).await;
    let first = world.runtime.start(&saga, "o-1", Order::of(1)).await.unwrap();
    world.until("o-1", "charge", |_, phase| phase == StepPhase::Done).await;
    let refused = Order { is_refused: true, ..Order::of(2) };
    let second = world.runtime.start(&saga, "o-2", refused).await.unwrap();
    world.until_it_waits_for_lock("o-2", "credit").await;
    world.runtime.signal("o-2", "go", &Go).await.unwrap();
    let outcome = second.outcome().await.unwrap();
    assert!(outcome.to_string().contains("refused"), "{outcome}");
    world.runtime.signal("o-1", "go", &Go).await.unwrap();
    world.until_it_has_begun("o-1", "further").await;
    world.runtime.signal("o-1", "further", &Further).await.unwrap();
    first.outcome().await.unwrap();
    assert_eq!(world.calls.all(), ["charge 1", "check 2", "check 1"]);
    world.ends_without_locks().await;
}

struct Billing;

impl SubSaga for Billing {
    const NAME: &'static str = "billing";
    type Input = Order;
    type Output = ();
}

/// The locks of a sub-saga last as long as it may have to be undone, and it never waits for its outer saga.
#[tokio::test(start_paused = true)]
async fn the_locks_of_a_sub_saga_belong_to_the_outermost_saga() {
    let billing = Saga::named("billing").input::<Order>();
    let billing = billing.semantic_lock::<Credit, _>(account).step::<charge>().build().unwrap();
    let saga = named()
        .semantic_lock::<Stock, _>(|order: &Order| if order.id == 1 { account(order) } else { item(order) })
        .sub_saga::<Billing>(&billing)
        .wait_for::<Go>(Wait::without_limit())
        .build()
        .unwrap();
    let world = world(&saga).await;
    let first = world.runtime.start(&saga, "o-1", Order::of(1)).await.unwrap();
    world.until_it_has_begun("o-1", "go").await;
    let second = world.runtime.start(&saga, "o-2", Order::of(2)).await.unwrap();
    world
        .until("o-2", "billing", |status, _| status.steps[1].child.as_ref().is_some_and(|it| it.status.is_some()))
        .await;
    let inner = world.until_it_waits_for_lock("o-2>billing", "credit").await;
    assert_eq!(inner.steps[0].lock.as_ref().unwrap().waits_for[0].as_str(), "o-1");
    for (key, saga) in [("o-1", first), ("o-2", second)] {
        world.until_it_has_begun(key, "go").await;
        world.runtime.signal(key, "go", &Go).await.unwrap();
        saga.outcome().await.unwrap();
    }
    assert_eq!(world.calls.all(), ["charge 1", "charge 2"]);
    world.ends_without_locks().await;
}

/// A lock that an operator ends goes to the next saga, and the saga begins no step without it.
#[tokio::test(start_paused = true)]
async fn a_saga_without_its_lock_begins_no_step() {
    let saga = named()
        .semantic_lock::<Credit, _>(account)
        .step::<charge>()
        .wait_for::<Go>(Wait::without_limit())
        .step::<ship>()
        .build()
        .unwrap();
    let world = world(&saga).await;
    let admin = world.runtime.admin().actor("ann");
    let first = world.runtime.start(&saga, "o-1", Order::of(1)).await.unwrap();
    world.until_it_has_begun("o-1", "go").await;
    let control = admin.control("o-1");
    let refused = control.release_lock::<Credit>("it takes too long").await.unwrap_err();
    assert!(refused.to_string().contains("neither stuck nor paused"), "{refused}");
    let refused = control.release_lock::<Stock>("it takes too long").await.unwrap_err();
    assert!(refused.to_string().contains("takes no semantic lock `stock`"), "{refused}");
    control.pause("it takes too long").await.unwrap();
    // The wait for the signal is under way until its row is parked.
    world.runtime.signal("o-1", "go", &Go).await.unwrap();
    while control.release_lock::<Credit>("it takes too long").await.is_err() {
        tokio::task::yield_now().await;
    }
    let second = world.runtime.start(&saga, "o-2", Order::of(2)).await.unwrap();
    world.until_it_has_begun("o-2", "go").await;
    control.resume("go on").await.unwrap();
    let outcome = first.outcome().await.unwrap();
    assert!(outcome.to_string().contains("an operator has ended its semantic lock `credit`"), "{outcome}");
    let refused = control.release_lock::<Credit>("once more").await.unwrap_err();
    assert!(refused.to_string().contains("does not have this semantic lock"), "{refused}");
    control.retry("once more").await.unwrap();
    assert_eq!(world.status("o-1").await.summary.status, Status::Stuck, "a retry begins nothing either");
    control.cancel("it cannot go on").await.unwrap();
    control.skip("it cannot go on").await.unwrap();
    let outcome = first.closed().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    world.runtime.signal("o-2", "go", &Go).await.unwrap();
    second.outcome().await.unwrap();
    assert_eq!(world.calls.all(), ["charge 1", "charge 2", "give back 1", "ship 2"]);
    let history = world.status("o-1").await.history;
    let acts: Vec<String> = history.iter().filter_map(|event| Some(event.audit.as_ref()?.action.clone())).collect();
    assert!(acts.contains(&"release-lock".to_owned()), "{acts:?}");
    world.ends_without_locks().await;
}

/// Another process on the same store hands over what this one waits for.
#[tokio::test(start_paused = true)]
async fn a_wait_outlives_its_process() {
    let saga = named().semantic_lock::<Credit, _>(account).wait_for::<Go>(Wait::without_limit()).build().unwrap();
    let world = world(&saga).await;
    for id in 1..=2 {
        world.runtime.start(&saga, format!("o-{id}"), Order::of(id)).await.unwrap();
        world.until(&format!("o-{id}"), "credit", |status, _| status.steps[0].lock.is_some()).await;
    }
    world.runtime.shutdown().await;
    let runtime = Runtime::builder(world.store.clone()).saga(&saga).state(world.calls.clone()).start().await.unwrap();
    let world = World { runtime, ..world };
    for id in 1..=2 {
        let key = format!("o-{id}");
        world.until_it_has_begun(&key, "go").await;
        world.runtime.signal(&key, "go", &Go).await.unwrap();
        world.runtime.attach(&key).await.unwrap().outcome().await.unwrap();
    }
    world.ends_without_locks().await;
}

#[test]
fn a_lock_stands_before_the_pivot_and_ends_behind_it() {
    let problem = |saga: SagaBuilder<MemoryStore, Order>| saga.build().unwrap_err().to_string();
    let locked = || named().semantic_lock::<Credit, _>(account).step::<charge>();
    let late = named().step::<ship>().pivot().semantic_lock::<Credit, _>(account);
    assert!(problem(late).contains("the semantic lock `credit`: it stands behind the pivot"));
    let early = locked().release::<Credit>().step::<ship>().pivot();
    assert!(problem(early).contains("it is ended by `.release` before the pivot"));
    let unknown = locked().step::<ship>().pivot().release::<Stock>();
    assert!(problem(unknown).contains("the semantic lock `stock`: it is ended by `.release`, but not taken"));
    let nothing = named().release::<Credit>().semantic_lock::<Credit, _>(account).step::<ship>();
    assert!(problem(nothing).contains("`.release` stands behind no single step"));
    let twice = locked().semantic_lock::<Credit, _>(item).step::<ship>();
    assert!(problem(twice).contains("two of its steps are named `credit`"));
    assert!(locked().step::<ship>().release::<Credit>().build().is_ok(), "the last step is the pivot");
}

/// Sagas that are under way keep their digests: only a definition with a lock has another shape.
#[test]
fn a_definition_without_a_lock_has_the_shape_that_it_had() {
    let saga: Saga<MemoryStore, Order> = named().step::<charge>().step::<ship>().build().unwrap();
    assert!(!saga.to_mermaid().contains("semantic lock"));
    let saga: Saga<MemoryStore, Order> = named().semantic_lock::<Credit, _>(account).step::<ship>().build().unwrap();
    assert!(saga.to_mermaid().contains("s0[\"credit<br/>takes a semantic lock\"]"), "{}", saga.to_mermaid());
}
