//! Sagas as steps of others, on every store: they end together, also where another process takes them up.

use std::sync::{Arc, Mutex};

use saga_core::store::Status;
use saga_core::{
    Key, Outcome, Output, Runtime, Saga, State, StepContext, StepError, SubSaga, Tenant, saga_compensation, saga_step,
};
use saga_tests::Books;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Order {
    pieces: u32,
    is_paid: bool,
    is_booked: bool,
}

/// Whether the truck comes, and how often it was called.
#[derive(Clone, Default)]
struct Truck(Arc<Mutex<(bool, u32)>>);

#[saga_step(compensate = unpack)]
async fn pack<S: Books>(tx: &mut S::Conn, order: Order) -> Result<u32, StepError> {
    assert_eq!(S::add(tx, "packed", 1).await?, 1, "it is packed once");
    Ok(order.pieces)
}

#[saga_compensation]
async fn unpack<S: Books>(tx: &mut S::Conn, order: Order, packed: u32) -> Result<(), StepError> {
    assert_eq!(packed, order.pieces);
    S::add(tx, "packed", -1).await?;
    Ok(())
}

#[saga_step(compensate = give_back, retry(base = "1ms", cap = "1ms"))]
async fn book(ctx: &StepContext, order: Order, State(truck): State<Truck>) -> Result<String, StepError> {
    assert_eq!(ctx.key(), "o-1>shipping:book");
    let (comes, called) = &mut *truck.0.lock().unwrap();
    *called += 1;
    if !*comes {
        return Err(StepError::not_sent("nobody answers"));
    }
    if order.is_booked { Ok(format!("truck {}", order.pieces)) } else { Err(StepError::reject("no truck is free")) }
}

#[saga_compensation]
async fn give_back(_ctx: &StepContext, order: Order, booked: String) -> Result<(), StepError> {
    assert_eq!(booked, format!("truck {}", order.pieces));
    Ok(())
}

#[saga_step(compensate = unbill)]
async fn bill<S: Books>(tx: &mut S::Conn, order: Order, Output(truck): Output<Shipping>) -> Result<(), StepError> {
    assert_eq!(truck, "truck 3", "the result of the saga");
    S::add(tx, "bills", 1).await?;
    if order.is_paid { Ok(()) } else { Err(StepError::reject("nobody pays")) }
}

#[saga_compensation]
async fn unbill<S: Books>(tx: &mut S::Conn, _order: Order, _billed: ()) -> Result<(), StepError> {
    S::add(tx, "bills", -1).await?;
    Ok(())
}

struct Shipping;

impl SubSaga for Shipping {
    const NAME: &'static str = "shipping";
    type Input = Order;
    type Output = String;
}

fn order<S: Books>() -> Saga<S, Order> {
    let ship = Saga::named("ship").input::<Order>().step::<pack>().step::<book>().returns::<book>().build().unwrap();
    Saga::named("order").input::<Order>().sub_saga::<Shipping>(&ship).step::<bill>().build().unwrap()
}

async fn start<S: Books>(store: &S, truck: &Truck) -> Runtime<S> {
    Runtime::builder(store.clone()).saga(&order::<S>()).state(truck.clone()).start().await.unwrap()
}

async fn run<S: Books>(order_of: Order) -> (Outcome, [i64; 2], Status) {
    let (store, _kept) = S::fresh().await;
    let runtime = start(&store, &Truck(Arc::new(Mutex::new((true, 0))))).await;
    let outcome = runtime.start(&order::<S>(), "o-1", order_of).await.unwrap().outcome().await.unwrap();
    runtime.shutdown().await;
    let sub = store.saga(&Tenant::default(), &Key::from_stored("o-1>shipping").unwrap()).await.unwrap().unwrap();
    (outcome, [store.counter("packed").await, store.counter("bills").await], sub.status)
}

const ORDER: Order = Order { pieces: 3, is_paid: true, is_booked: true };

async fn both_complete<S: Books>() {
    let (outcome, books, sub) = run::<S>(ORDER).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!((books, sub), ([1, 1], Status::Completed));
}

async fn g5_both_are_undone_whichever_fails<S: Books>() {
    for (order_of, step) in
        [(Order { is_booked: false, ..ORDER }, "shipping"), (Order { is_paid: false, ..ORDER }, "bill")]
    {
        let (outcome, books, sub) = run::<S>(order_of).await;
        let Outcome::Compensated { failed_step, .. } = outcome else { panic!("{outcome}") };
        assert_eq!((failed_step.as_str(), books, sub), (step, [0, 0], Status::Compensated));
    }
}

/// What one process began another one takes up: both sagas, each where it stands.
async fn another_process_takes_both_up<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let truck = Truck::default();
    let first = start(&store, &truck).await;
    drop(first.start(&order::<S>(), "o-1", ORDER).await.unwrap());
    while truck.0.lock().unwrap().1 == 0 {
        tokio::task::yield_now().await;
    }
    first.shutdown().await;
    truck.0.lock().unwrap().0 = true;
    let second = start(&store, &truck).await;
    let outcome = second.start(&order::<S>(), "o-1", ORDER).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    second.shutdown().await;
    assert_eq!([store.counter("packed").await, store.counter("bills").await], [1, 1]);
}

saga_tests::on_every_store! {
    both_complete,
    g5_both_are_undone_whichever_fails,
    another_process_takes_both_up,
}
