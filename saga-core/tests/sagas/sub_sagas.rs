//! Sagas as steps of others: how they end together, and how each is undone.

mod beside;
mod deeper;
mod operators;

use std::sync::{Arc, Mutex};

use saga_core::engine::{CompensationCause, ControlOutcome};
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::SagaBuilder;
use saga_core::store::{Sagas, Status};
use saga_core::{
    Batch, BatchResults, Key, Outcome, Output, Runtime, Saga, State, StepContext, StepError, SubSaga, Tenant,
    saga_compensation, saga_step,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Order {
    pieces: u32,
    /// The step that refuses it.
    refused: Option<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    Pack,
    Book,
    Bill,
}

impl Order {
    fn check(self, step: Step) -> Result<(), StepError> {
        if self.refused == Some(step) { Err(StepError::reject("it is refused")) } else { Ok(()) }
    }
}

/// What holds the truck up, and the keys that it was booked under.
#[derive(Clone, Default)]
pub(crate) struct Trucks {
    arrived: Arc<Notify>,
    go_on: Arc<Notify>,
    is_held_up: bool,
    keys: Arc<Mutex<Vec<String>>>,
}

#[saga_step(compensate = put_back)]
async fn take_out(tx: &mut MemoryConn, order: Order) -> Result<u32, StepError> {
    tx.log("take out");
    Ok(order.pieces)
}

#[saga_compensation]
async fn put_back(tx: &mut MemoryConn, _order: Order, _taken: u32) -> Result<(), StepError> {
    tx.log("put back");
    Ok(())
}

#[saga_step(compensate = unpack)]
async fn pack(tx: &mut MemoryConn, order: Order) -> Result<u32, StepError> {
    tx.log(format!("pack {}", order.pieces));
    order.check(Step::Pack)?;
    Ok(order.pieces)
}

#[saga_compensation]
async fn unpack(tx: &mut MemoryConn, _order: Order, packed: u32) -> Result<(), StepError> {
    tx.log(format!("unpack {packed}"));
    Ok(())
}

#[saga_step(compensate = give_back)]
async fn book(ctx: &StepContext, order: Order, State(trucks): State<Trucks>) -> Result<String, StepError> {
    trucks.keys.lock().unwrap().push(ctx.key().to_owned());
    if trucks.is_held_up {
        trucks.arrived.notify_one();
        trucks.go_on.notified().await;
    }
    order.check(Step::Book)?;
    Ok("truck 7".to_owned())
}

#[saga_compensation]
async fn give_back(tx: &mut MemoryConn, _order: Order, truck: String) -> Result<(), StepError> {
    tx.log(format!("give back {truck}"));
    Ok(())
}

#[saga_step(compensate = unbill)]
async fn bill(tx: &mut MemoryConn, order: Order, Output(truck): Output<Shipping>) -> Result<(), StepError> {
    tx.log(format!("bill {truck}"));
    order.check(Step::Bill)
}

#[saga_compensation]
async fn unbill(_tx: &mut MemoryConn, _order: Order, _billed: ()) -> Result<(), StepError> {
    Ok(())
}

#[saga_step]
async fn tell(tx: &mut MemoryConn, _order: Order) -> Result<(), StepError> {
    tx.log("tell");
    Ok(())
}

pub(crate) struct Shipping;

impl SubSaga for Shipping {
    const NAME: &'static str = "shipping";
    type Input = Order;
    type Output = String;
}

fn ship() -> Saga<MemoryStore, Order, String> {
    Saga::named("ship").input::<Order>().step::<pack>().step::<book>().returns::<book>().build().unwrap()
}

fn new() -> SagaBuilder<MemoryStore, Order> {
    Saga::named("order").input::<Order>()
}

fn order() -> Saga<MemoryStore, Order> {
    let with_one_more = |order: &Order| Order { pieces: order.pieces + 1, ..*order };
    new().step::<take_out>().sub_saga_from::<Shipping, _>(&ship(), with_one_more).step::<bill>().build().unwrap()
}

async fn runtime(store: &MemoryStore, trucks: &Trucks) -> Runtime<MemoryStore> {
    Runtime::builder(store.clone()).saga(&order()).state(trucks.clone()).start().await.unwrap()
}

fn log(store: &MemoryStore) -> Vec<String> {
    store.read(|table| table.log().iter().map(|entry| String::from_utf8(entry.clone()).unwrap()).collect())
}

async fn status_of(store: &MemoryStore, key: &str) -> Option<Status> {
    let key = Key::from_stored(key).unwrap();
    Some(store.saga(&Tenant::default(), &key).await.unwrap()?.status)
}

async fn run(refused: Option<Step>) -> (MemoryStore, Outcome, Trucks) {
    let (store, trucks) = (MemoryStore::new(), Trucks::default());
    let runtime = runtime(&store, &trucks).await;
    let outcome = runtime.start(&order(), "o-1", Order { pieces: 2, refused }).await.unwrap().outcome().await.unwrap();
    runtime.shutdown().await;
    (store, outcome, trucks)
}

#[tokio::test]
async fn the_step_is_done_when_its_saga_has_completed() {
    let (store, outcome, trucks) = run(None).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(log(&store), ["take out", "pack 3", "bill truck 7"]);
    assert_eq!(status_of(&store, "o-1>shipping").await, Some(Status::Completed));
    assert_eq!(*trucks.keys.lock().unwrap(), ["o-1>shipping:book"], "a key of its own");
}

#[tokio::test]
async fn a_saga_that_compensates_rejects_the_step_with_its_reason() {
    for (refused, undone) in [(Step::Pack, vec!["put back"]), (Step::Book, vec!["pack 3", "unpack 3", "put back"])] {
        let (store, outcome, _) = run(Some(refused)).await;
        let Outcome::Compensated { failed_step, reason, .. } = outcome else { panic!("{outcome}") };
        assert_eq!((failed_step.as_str(), reason.message()), ("shipping", "it is refused"));
        assert_eq!(log(&store)[1..], undone);
        assert_eq!(status_of(&store, "o-1>shipping").await, Some(Status::Compensated));
    }
}

/// G5: what the saga did is undone, the latest first, before what stands in front of it.
#[tokio::test]
async fn g5_a_completed_saga_is_undone_with_the_one_that_it_is_a_step_of() {
    let (store, outcome, _) = run(Some(Step::Bill)).await;
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!(log(&store)[2..], ["give back truck 7", "unpack 3", "put back"]);
    assert_eq!(status_of(&store, "o-1>shipping").await, Some(Status::Compensated));
}

#[tokio::test]
async fn g5_a_saga_that_runs_is_turned_round_with_the_one_that_it_is_a_step_of() {
    let (store, trucks) = (MemoryStore::new(), Trucks { is_held_up: true, ..Trucks::default() });
    let runtime = runtime(&store, &trucks).await;
    let running = runtime.start(&order(), "o-1", Order { pieces: 2, refused: None }).await.unwrap();
    trucks.arrived.notified().await;
    assert_eq!(runtime.cancel("o-1", "no longer wanted").await.unwrap(), ControlOutcome::Applied);
    while status_of(&store, "o-1>shipping").await != Some(Status::Compensating) {
        tokio::task::yield_now().await;
    }
    trucks.go_on.notify_one();
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::Cancelled, .. }
    ));
    assert_eq!(log(&store), ["take out", "pack 3", "give back truck 7", "unpack 3", "put back"]);
    runtime.shutdown().await;
}

/// The command of a sub-saga that waits has begun, though nothing is recorded of the outer saga yet.
#[tokio::test]
async fn g5_a_sub_saga_that_comes_first_is_turned_round() {
    let (store, trucks) = (MemoryStore::new(), Trucks { is_held_up: true, ..Trucks::default() });
    let first = new().sub_saga::<Shipping>(&ship()).step::<tell>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&first).state(trucks.clone()).start().await.unwrap();
    let running = runtime.start(&first, "o-1", Order { pieces: 2, refused: None }).await.unwrap();
    trucks.arrived.notified().await;
    while runtime.status("o-1").await.unwrap().unwrap().steps[0].due_at.is_none() {
        tokio::task::yield_now().await;
    }
    runtime.cancel("o-1", "no longer wanted").await.unwrap();
    while status_of(&store, "o-1>shipping").await != Some(Status::Compensating) {
        tokio::task::yield_now().await;
    }
    trucks.go_on.notify_one();
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::Cancelled, .. }
    ));
    assert_eq!(log(&store), ["pack 2", "give back truck 7", "unpack 2"]);
    runtime.shutdown().await;
}

/// Behind it the saga only goes forward, so the sub-saga stays done, although it could be undone.
#[tokio::test]
async fn a_sub_saga_can_be_the_pivot() {
    let saga = new().step::<take_out>().sub_saga::<Shipping>(&ship()).pivot().step::<bill>().build().unwrap();
    for (refused, logged, shipping) in [
        (None, vec!["take out", "pack 2", "bill truck 7"], Status::Completed),
        (Some(Step::Book), vec!["take out", "pack 2", "unpack 2", "put back"], Status::Compensated),
        (Some(Step::Bill), vec!["take out", "pack 2"], Status::Completed),
    ] {
        let store = MemoryStore::new();
        let runtime = Runtime::builder(store.clone()).saga(&saga).state(Trucks::default()).start().await.unwrap();
        let running = runtime.start(&saga, "o-1", Order { pieces: 2, refused }).await.unwrap();
        let outcome = running.outcome().await.unwrap();
        let is_expected = match refused {
            None => matches!(outcome, Outcome::Completed { .. }),
            Some(Step::Bill) => matches!(outcome, Outcome::Stuck { .. }),
            Some(_) => matches!(outcome, Outcome::Compensated { .. }),
        };
        assert!(is_expected, "{refused:?}: {outcome}");
        assert_eq!(log(&store), logged);
        assert_eq!(status_of(&store, "o-1>shipping").await, Some(shipping));
        runtime.shutdown().await;
    }
}

/// The keys of a batch step's calls are those of its own saga: two sagas would share theirs otherwise.
#[tokio::test]
async fn g3_a_batch_step_has_the_keys_of_its_saga() {
    #[saga_step(no_compensation)]
    async fn label(tx: &mut MemoryConn, orders: Batch<Order>) -> Result<BatchResults<u32>, StepError> {
        orders.keys().for_each(|key| tx.log(key));
        Ok(orders.map_each(|order| order.pieces))
    }
    struct Labelling;
    impl SubSaga for Labelling {
        const NAME: &'static str = "labelling";
        type Input = Order;
        type Output = u32;
    }
    let child = Saga::named("label").input::<Order>().step::<label>().returns::<label>().build().unwrap();
    let parent = new().step::<label>().sub_saga::<Labelling>(&child).step::<tell>().build().unwrap();
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store.clone()).saga(&parent).start().await.unwrap();
    let running = runtime.start(&parent, "o-1", Order { pieces: 2, refused: None }).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(log(&store), ["o-1:label", "o-1>labelling:label", "tell"]);
    runtime.shutdown().await;
}

#[test]
fn what_does_not_hold_together_is_refused() {
    let check = |builder: SagaBuilder<MemoryStore, Order>, expected: &str| {
        let said = builder.build().unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    };
    let with_pivot = Saga::named("ship").input::<Order>().step::<book>().step::<tell>();
    let with_pivot = with_pivot.returns::<book>().build().unwrap();
    check(new().sub_saga::<Shipping>(&with_pivot).step::<take_out>(), "`ship` only goes forward from its pivot on");
    assert!(new().step::<take_out>().sub_saga::<Shipping>(&with_pivot).build().is_ok(), "it is the pivot");
    check(new().sub_saga::<Shipping>(&ship()).sub_saga::<Shipping>(&ship()), "two of its steps are named `shipping`");
}
