//! Sub-sagas and what stands beside them: who is told what, and when. Time is virtual, and a saga that waits has waited for
//! long, so that nobody looks at it by chance.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::StepPhase;
use saga_core::engine::{CompensationCause, SagaAdmin, SagaStatus};
use saga_core::env::TokioEnvironment;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::Branch;
use saga_core::store::Status;
use saga_core::{Outcome, Runtime, Saga, State, StepContext, StepError, SubSaga, saga_compensation, saga_step};
use tokio::sync::Notify;

use crate::sub_sagas::{Order, Step, log, new, pack, tell};

pub(crate) const ORDER: Order = Order { pieces: 2, refused: None };
/// By then nobody looks often at what waits.
pub(crate) const LONG: Duration = Duration::from_mins(10);
/// How often something is looked at that is to happen.
const LOOKS_MAX: u32 = 10_000;
/// So soon is what was told, and not found by looking.
pub(crate) const SOON: Duration = Duration::from_secs(1);

/// Whether what is asked for can be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Shop {
    #[default]
    Open,
    Closed,
}

#[derive(Clone, Default)]
pub(crate) struct Door {
    shop: Arc<Mutex<Shop>>,
    moves: Arc<Notify>,
}

impl Door {
    pub(crate) fn is(shop: Shop) -> Self {
        Self { shop: Arc::new(Mutex::new(shop)), ..Self::default() }
    }

    pub(crate) fn set(&self, shop: Shop) {
        *self.shop.lock().unwrap() = shop;
    }

    fn get(&self) -> Shop {
        *self.shop.lock().unwrap()
    }
}

/// Needs a person when the shop is closed: nobody knows then what became of it.
#[saga_step(compensate = uncount, retry(attempts = 1), on_exhausted = "compensate")]
pub(crate) async fn count(_ctx: &StepContext, order: Order, State(door): State<Door>) -> Result<u32, StepError> {
    if door.get() == Shop::Open { Ok(order.pieces) } else { Err(StepError::retry("nobody is there")) }
}

#[saga_compensation(retry(attempts = 1))]
pub(crate) async fn uncount(
    tx: &mut MemoryConn,
    _order: Order,
    _counted: u32,
    State(door): State<Door>,
) -> Result<(), StepError> {
    if door.get() != Shop::Open {
        return Err(StepError::retry("nobody is there"));
    }
    tx.log("uncount");
    Ok(())
}

/// Waits until the door moves, and is refused.
#[saga_step(compensate = fire, exclusive, timeout = "2h")]
pub(crate) async fn hire(_ctx: &StepContext, _order: Order, State(door): State<Door>) -> Result<u32, StepError> {
    door.moves.notified().await;
    Err(StepError::reject("nobody is free"))
}

#[saga_compensation]
pub(crate) async fn fire(_ctx: &StepContext, _order: Order, _hired: u32) -> Result<(), StepError> {
    Ok(())
}

/// Is tried every hour until the shop opens.
#[saga_step(compensate = unload, retry(attempts = 1000, base = "1h", cap = "1h"), on_exhausted = "compensate")]
pub(crate) async fn load(_ctx: &StepContext, order: Order, State(door): State<Door>) -> Result<u32, StepError> {
    if door.get() == Shop::Open { Ok(order.pieces) } else { Err(StepError::not_sent("the gate is shut")) }
}

#[saga_compensation]
pub(crate) async fn unload(_ctx: &StepContext, _order: Order, _loaded: u32) -> Result<(), StepError> {
    Ok(())
}

/// Who is refused finds the shop closed afterwards.
#[saga_step]
pub(crate) async fn accept(tx: &mut MemoryConn, order: Order, State(door): State<Door>) -> Result<(), StepError> {
    tx.log("accept");
    if order.refused.is_some() {
        door.set(Shop::Closed);
    }
    order.check(Step::Bill)
}

/// Packs, and counts.
pub(crate) struct Counting;

impl SubSaga for Counting {
    const NAME: &'static str = "counting";
    type Input = Order;
    type Output = u32;
}

/// Packs, and loads.
pub(crate) struct Loading;

impl SubSaga for Loading {
    const NAME: &'static str = "loading";
    type Input = Order;
    type Output = u32;
}

/// A step of it needs a person while the shop is closed.
pub(crate) fn counted() -> Saga<MemoryStore, Order> {
    let child =
        Saga::named("count").input::<Order>().step::<pack>().step::<count>().returns::<count>().build().unwrap();
    new().sub_saga::<Counting>(&child).step::<accept>().build().unwrap()
}

pub(crate) fn to_load() -> Saga<MemoryStore, Order, u32> {
    Saga::named("load").input::<Order>().step::<pack>().step::<load>().returns::<load>().build().unwrap()
}

/// It waits while the shop is closed.
pub(crate) fn loaded() -> Saga<MemoryStore, Order> {
    new().sub_saga::<Loading>(&to_load()).step::<tell>().build().unwrap()
}

/// One waits, and one beside it needs a person, while the shop is closed.
pub(crate) fn loaded_and_counted() -> Saga<MemoryStore, Order> {
    let loading = |branch: Branch<MemoryStore, Order>| branch.sub_saga::<Loading>(&to_load());
    new().parallel(|group| group.branch(loading).branch(Branch::step::<count>)).step::<tell>().build().unwrap()
}

/// A store whose clock is that of the test, and who works on it.
pub(crate) async fn runtime(saga: &Saga<MemoryStore, Order>, door: &Door) -> (MemoryStore, Runtime<MemoryStore>) {
    let store = MemoryStore::with_environment(Arc::new(TokioEnvironment::current().unwrap()));
    let runtime = Runtime::builder(store.clone()).saga(saga).state(door.clone()).start().await.unwrap();
    (store, runtime)
}

pub(crate) async fn seen(runtime: &Runtime<MemoryStore>, key: &str) -> SagaStatus {
    runtime.status(key).await.unwrap().unwrap()
}

pub(crate) async fn until(
    runtime: &Runtime<MemoryStore>,
    key: &str,
    is_so: impl Fn(&SagaStatus) -> bool,
) -> SagaStatus {
    for _ in 0..LOOKS_MAX {
        if let Some(status) = runtime.status(key).await.unwrap().filter(&is_so) {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{key} stays as it is: {:?}", runtime.status(key).await)
}

pub(crate) async fn until_it_is(runtime: &Runtime<MemoryStore>, key: &str, wanted: Status) -> SagaStatus {
    until(runtime, key, |status| status.summary.status == wanted).await
}

#[tokio::test(start_paused = true)]
async fn a_saga_and_its_sub_saga_name_each_other() {
    let (saga, door) = (counted(), Door::is(Shop::Closed));
    let (_, runtime) = runtime(&saga, &door).await;
    let running = runtime.start(&saga, "o-1", ORDER).await.unwrap();
    let child = until_it_is(&runtime, "o-1>counting", Status::Stuck).await;
    assert_eq!(child.summary.step_of.as_ref().map(saga_core::Key::as_str), Some("o-1"));

    let status = seen(&runtime, "o-1").await;
    assert_eq!((status.summary.status, status.summary.step_of), (Status::Running, None));
    assert_eq!(status.steps[0].phase, StepPhase::Started);
    let shown = status.steps[0].child.clone().unwrap();
    assert_eq!((shown.key.as_str(), shown.status), ("o-1>counting", Some(Status::Stuck)));
    assert_eq!(shown.outcome, child.summary.outcome, "why it is stuck");
    assert_eq!(status.steps[1].child, None);

    // A person acts on it by its own key.
    runtime
        .admin()
        .control("o-1>counting")
        .at_revision(child.revision)
        .skip_with(&7_u32, "counted by hand")
        .await
        .unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    let shown = seen(&runtime, "o-1").await.steps[0].child.clone().unwrap();
    assert!(matches!(shown.outcome, Some(Outcome::Completed { .. })), "{shown:?}");
    runtime.shutdown().await;
}

/// The command of the sub-saga waits for long, and is not left to that when a branch beside it fails.
#[tokio::test(start_paused = true)]
async fn g5_a_sub_saga_turns_round_as_soon_as_a_branch_beside_it_fails() {
    let loading = |branch: Branch<MemoryStore, Order>| branch.sub_saga::<Loading>(&to_load());
    let group = new().parallel(|group| group.branch(loading).branch(Branch::step::<hire>));
    let (saga, door) = (group.step::<tell>().build().unwrap(), Door::is(Shop::Closed));
    let (store, runtime) = runtime(&saga, &door).await;
    let running = runtime.start(&saga, "o-1", ORDER).await.unwrap();
    tokio::time::sleep(LONG).await;
    assert_eq!(seen(&runtime, "o-1>loading").await.summary.status, Status::Running);

    let began = tokio::time::Instant::now();
    door.moves.notify_one();
    let outcome = running.outcome().await.unwrap();
    let Outcome::Compensated { failed_step, .. } = &outcome else { panic!("{outcome}") };
    assert_eq!(failed_step, "hire");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(log(&store), ["pack 2", "unpack 2"]);
    let child = seen(&runtime, "o-1>loading").await.summary.outcome;
    assert!(matches!(child, Some(Outcome::Compensated { cause: CompensationCause::Cancelled, .. })), "{child:?}");
    runtime.shutdown().await;
}

/// Who waits for a sub-saga is told of its end also by somebody who is not of its process.
#[tokio::test(start_paused = true)]
async fn g11_a_sub_saga_that_a_desk_brings_to_its_end_is_seen_at_once() {
    let (saga, door) = (counted(), Door::is(Shop::Closed));
    let (store, runtime) = runtime(&saga, &door).await;
    let running = runtime.start(&saga, "o-1", ORDER).await.unwrap();
    until_it_is(&runtime, "o-1>counting", Status::Stuck).await;
    tokio::time::sleep(LONG).await;

    let began = tokio::time::Instant::now();
    let (desk, revision) = (SagaAdmin::new(store.clone()).saga(&saga), seen(&runtime, "o-1>counting").await.revision);
    desk.control("o-1>counting").at_revision(revision).skip_with(&7_u32, "counted by hand").await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(log(&store), ["pack 2", "accept"]);
    runtime.shutdown().await;
}

/// The saga that is undone waits for the person who has to decide about its sub-saga, and needs none itself.
#[tokio::test(start_paused = true)]
async fn g5_a_sub_saga_whose_undo_is_stuck_is_waited_for() {
    let (saga, door) = (counted(), Door::default());
    let (store, runtime) = runtime(&saga, &door).await;
    let refused = Order { refused: Some(Step::Bill), ..ORDER };
    let running = runtime.start(&saga, "o-1", refused).await.unwrap();
    let child = until_it_is(&runtime, "o-1>counting", Status::Stuck).await;
    tokio::time::sleep(LONG).await;
    let status = seen(&runtime, "o-1").await;
    assert_eq!((status.summary.status, status.steps[0].phase), (Status::Compensating, StepPhase::Undoing));
    assert_eq!(status.steps[0].child.as_ref().and_then(|child| child.status), Some(Status::Stuck));

    door.set(Shop::Open);
    let began = tokio::time::Instant::now();
    runtime.admin().control("o-1>counting").at_revision(child.revision).retry("it is open").await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Compensated { .. }));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(log(&store), ["pack 2", "uncount", "unpack 2"]);
    runtime.shutdown().await;
}
