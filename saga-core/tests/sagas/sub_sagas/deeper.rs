//! Sub-sagas that have sub-sagas, and steps in other services.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::engine::{CompensationCause, ControlOutcome};
use saga_core::memory::{MemoryConn, MemoryStore, MemoryTransport};
use saga_core::store::Status;
use saga_core::{
    Event, Outcome, Output, Runtime, Saga, Service, State, StepContext, StepError, SubSaga, saga_compensation,
    saga_step,
};

use serde::{Deserialize, Serialize};

use crate::sub_sagas::{Order, Shipping, Step, Trucks, log, new, ship, status_of, take_out};

/// Takes the pieces out and ships them.
struct Dispatch;

impl SubSaga for Dispatch {
    const NAME: &'static str = "dispatch";
    type Input = Order;
    type Output = String;
}

#[saga_step(compensate = unbill)]
async fn bill(tx: &mut MemoryConn, order: Order, Output(truck): Output<Dispatch>) -> Result<(), StepError> {
    tx.log(format!("bill {truck}"));
    order.check(Step::Bill)
}

#[saga_compensation]
async fn unbill(_tx: &mut MemoryConn, _order: Order, _billed: ()) -> Result<(), StepError> {
    Ok(())
}

fn dispatch() -> Saga<MemoryStore, Order, String> {
    let dispatch = Saga::named("dispatch").input::<Order>().step::<take_out>().sub_saga::<Shipping>(&ship());
    dispatch.returns::<Shipping>().build().unwrap()
}

fn order() -> Saga<MemoryStore, Order> {
    new().sub_saga::<Dispatch>(&dispatch()).step::<bill>().build().unwrap()
}

async fn run(refused: Option<Step>) -> (MemoryStore, Outcome, Trucks) {
    let (store, trucks) = (MemoryStore::new(), Trucks::default());
    let runtime = Runtime::builder(store.clone()).saga(&order()).state(trucks.clone()).start().await.unwrap();
    let running = runtime.start(&order(), "o-1", Order { pieces: 2, refused }).await.unwrap();
    let outcome = running.outcome().await.unwrap();
    runtime.shutdown().await;
    (store, outcome, trucks)
}

const ALL: [&str; 3] = ["o-1", "o-1>dispatch", "o-1>dispatch>shipping"];

async fn statuses(store: &MemoryStore) -> Vec<Option<Status>> {
    let mut statuses = Vec::new();
    for key in ALL {
        statuses.push(status_of(store, key).await);
    }
    statuses
}

#[tokio::test]
async fn a_sub_saga_has_sub_sagas() {
    let (store, outcome, trucks) = run(None).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(log(&store), ["take out", "pack 2", "bill truck 7"]);
    assert_eq!(statuses(&store).await, [Some(Status::Completed); 3]);
    assert_eq!(*trucks.keys.lock().unwrap(), ["o-1>dispatch>shipping:book"]);
}

/// Wherever it is refused, all that was done is undone, the latest first.
#[tokio::test]
async fn g5_what_sub_sagas_of_sub_sagas_did_is_undone() {
    let cases = [
        (Step::Pack, "dispatch", vec!["take out", "put back"]),
        (Step::Book, "dispatch", vec!["take out", "pack 2", "unpack 2", "put back"]),
        (Step::Bill, "bill", vec!["take out", "pack 2", "give back truck 7", "unpack 2", "put back"]),
    ];
    for (refused, failed, logged) in cases {
        let (store, outcome, _) = run(Some(refused)).await;
        let Outcome::Compensated { failed_step, reason, .. } = outcome else { panic!("{outcome}") };
        assert_eq!((failed_step.as_str(), reason.message()), (failed, "it is refused"));
        assert_eq!(log(&store), logged, "{refused:?}");
        assert_eq!(statuses(&store).await, [Some(Status::Compensated); 3]);
    }
}

#[tokio::test]
async fn g5_a_sub_saga_of_a_sub_saga_is_turned_round_with_the_outermost() {
    let (store, trucks) = (MemoryStore::new(), Trucks { is_held_up: true, ..Trucks::default() });
    let runtime = Runtime::builder(store.clone()).saga(&order()).state(trucks.clone()).start().await.unwrap();
    let running = runtime.start(&order(), "o-1", Order { pieces: 2, refused: None }).await.unwrap();
    trucks.arrived.notified().await;
    assert_eq!(runtime.cancel("o-1", "no longer wanted").await.unwrap(), ControlOutcome::Applied);
    while status_of(&store, ALL[2]).await != Some(Status::Compensating) {
        tokio::task::yield_now().await;
    }
    trucks.go_on.notify_one();
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::Cancelled, .. }
    ));
    assert_eq!(log(&store), ["take out", "pack 2", "give back truck 7", "unpack 2", "put back"]);
    let step_of = |status: saga_core::engine::SagaStatus| status.summary.step_of.map(|key| key.to_string());
    for (key, outer) in [(ALL[1], ALL[0]), (ALL[2], ALL[1])] {
        let status = runtime.status(key).await.unwrap().unwrap();
        assert_eq!(step_of(status).as_deref(), Some(outer));
    }
    runtime.shutdown().await;
}

/// A name as long as can be.
struct Long;

impl SubSaga for Long {
    const NAME: &'static str = "a-step-whose-name-is-40-bytes-long-it-is";
    type Input = Order;
    type Output = String;
}

/// The same, in front of that.
struct Longer;

impl SubSaga for Longer {
    const NAME: &'static str = Long::NAME;
    type Input = Order;
    type Output = String;
}

#[tokio::test]
async fn a_key_that_leaves_no_room_for_those_of_the_steps_is_refused() {
    let long = Saga::named("long").input::<Order>().sub_saga::<Dispatch>(&dispatch()).returns::<Dispatch>();
    let long = long.build().unwrap();
    let longer = Saga::named("longer").input::<Order>().sub_saga::<Long>(&long).returns::<Long>().build().unwrap();
    let outer = new().sub_saga::<Longer>(&longer).build().unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&outer).state(Trucks::default()).start().await.unwrap();
    let start = |bytes: usize| runtime.start(&outer, "k".repeat(bytes), Order { pieces: 2, refused: None });
    let refused = start(120).await.unwrap_err().to_string();
    let max = "at most 89 are allowed, since steps of the sagas that are steps of this one have theirs behind it";
    assert!(refused.contains(max), "{refused}");
    assert!(start(90).await.is_err());
    let outcome = start(89).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    runtime.shutdown().await;
}

mod contracts {
    use super::Order;
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "bank", compensated)]
    pub(crate) async fn pay(order: Order) -> Result<u32, StepError>;
}

/// The keys that the bank was called with.
#[derive(Clone, Default)]
struct Bank(Arc<Mutex<Vec<String>>>);

#[saga_step(implements = contracts::pay, compensate = refund)]
async fn pay(ctx: &StepContext, order: Order, State(bank): State<Bank>) -> Result<u32, StepError> {
    bank.0.lock().unwrap().push(ctx.key().to_owned());
    order.check(Step::Book)?;
    Ok(order.pieces * 100)
}

#[saga_compensation]
async fn refund(ctx: &StepContext, _order: Order, _paid: u32, State(bank): State<Bank>) -> Result<(), StepError> {
    bank.0.lock().unwrap().push(ctx.key().to_owned());
    Ok(())
}

/// Takes the pieces out and has them paid elsewhere.
struct Purchase;

impl SubSaga for Purchase {
    const NAME: &'static str = "purchase";
    type Input = Order;
    type Output = u32;
}

#[saga_step]
async fn note(tx: &mut MemoryConn, order: Order, Output(paid): Output<Purchase>) -> Result<(), StepError> {
    order.check(Step::Bill)?;
    tx.log(format!("paid {paid}"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_sub_saga_has_steps_in_other_services() {
    let (paid, undone) = ("o-1>purchase:pay", "o-1>purchase:pay:undo");
    let cases = [
        (None, vec![paid], vec!["take out", "paid 200"]),
        (Some(Step::Book), vec![paid], vec!["take out", "put back"]),
        (Some(Step::Bill), vec![paid, undone], vec!["take out", "put back"]),
    ];
    for (refused, calls, logged) in cases {
        let (transport, bank, store) = (MemoryTransport::new(), Bank::default(), MemoryStore::new());
        let service = Service::named("bank").host::<pay>().build().unwrap();
        let host = Runtime::builder(MemoryStore::new()).transport(transport.clone()).service(&service);
        let host = host.state(bank.clone()).start().await.unwrap();
        let purchase = Saga::named("purchase").input::<Order>().step::<take_out>().step::<contracts::pay>();
        let purchase = purchase.returns::<contracts::pay>().build().unwrap();
        let saga = new().sub_saga::<Purchase>(&purchase).step::<note>().build().unwrap();
        let orders = Runtime::builder(store.clone()).transport(transport).saga(&saga);
        let orders = orders.settings(|settings| settings.service = Some("orders".to_owned())).start().await.unwrap();
        let running = orders.start(&saga, "o-1", Order { pieces: 2, refused }).await.unwrap();
        let outcome = running.outcome().await.unwrap();
        assert_eq!(matches!(outcome, Outcome::Completed { .. }), refused.is_none(), "{outcome}");
        assert_eq!(*bank.0.lock().unwrap(), calls);
        assert_eq!(log(&store), logged);
        assert_eq!(
            status_of(&store, "o-1>purchase").await.map(|status| status == Status::Completed),
            Some(refused.is_none())
        );
        let known = host.status("o-1>purchase>pay").await.unwrap().unwrap();
        assert_eq!(known.steps.len(), 1);
        orders.shutdown().await;
        host.shutdown().await;
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Labelled {
    pieces: u32,
}

impl Event for Labelled {
    const NAME: &'static str = "labelled";
}

#[saga_step(no_compensation)]
async fn label(_tx: &mut MemoryConn, ctx: &StepContext, order: Order) -> Result<(), StepError> {
    ctx.emit(&Labelled { pieces: order.pieces })
}

#[saga_step(no_compensation)]
async fn print(tx: &mut MemoryConn, ctx: &StepContext, labelled: Labelled) -> Result<(), StepError> {
    tx.log(format!("{} prints {}", ctx.key(), labelled.pieces));
    Ok(())
}

struct Labelling;

impl SubSaga for Labelling {
    const NAME: &'static str = "labelling";
    type Input = Order;
    type Output = ();
}

/// Whoever listens knows of which saga an event is, also where that is a step of another one.
#[tokio::test(start_paused = true)]
async fn events_of_a_sub_saga_are_heard() {
    let (transport, paper) = (MemoryTransport::new(), MemoryStore::new());
    let service = Service::named("printer").on_topic::<Labelled>("labelling").run::<print>().build().unwrap();
    let host = Runtime::builder(paper.clone()).transport(transport.clone()).service(&service);
    let host = host.start().await.unwrap();
    let labelling = Saga::named("labelling").input::<Order>().step::<label>().build().unwrap();
    let saga = new().sub_saga::<Labelling>(&labelling).build().unwrap();
    let orders = Runtime::builder(MemoryStore::new()).transport(transport).saga(&saga).start().await.unwrap();
    let running = orders.start(&saga, "o-1", Order { pieces: 2, refused: None }).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    let printed = async {
        while log(&paper).is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        log(&paper)
    };
    let printed = tokio::time::timeout(Duration::from_mins(1), printed).await.unwrap_or_default();
    assert_eq!(printed, ["o-1>labelling:print prints 2"]);
    orders.shutdown().await;
    host.shutdown().await;
}
