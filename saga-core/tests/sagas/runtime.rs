//! The whole path on the memory store.

use std::sync::{Arc, Mutex};

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Outcome, Output, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
struct Order {
    amount: i64,
    in_stock: i64,
    card: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Payment {
    amount: i64,
}

#[derive(Clone, Default)]
struct Gateway(Arc<Mutex<Vec<String>>>);

#[saga_step(compensate = release)]
async fn reserve(tx: &mut MemoryConn, order: Order) -> Result<i64, StepError> {
    let left = tx.add("stock", -order.amount)?;
    if left < -order.in_stock {
        return Err(StepError::reject("out of stock"));
    }
    Ok(order.amount)
}

#[saga_compensation]
async fn release(tx: &mut MemoryConn, _order: Order, reserved: i64) -> Result<(), StepError> {
    tx.add("stock", reserved)?;
    Ok(())
}

#[saga_step(compensate = refund)]
async fn charge(ctx: &StepContext, order: Order, State(gateway): State<Gateway>) -> Result<Payment, StepError> {
    if order.card == "bad" {
        return Err(StepError::reject("card declined"));
    }
    gateway.0.lock().unwrap().push(ctx.key().to_owned());
    if order.card == "flaky" && ctx.attempt() < 3 {
        return Err(StepError::retry("connection reset"));
    }
    Ok(Payment { amount: order.amount })
}

#[saga_compensation]
async fn refund(
    ctx: &StepContext,
    _order: Order,
    _payment: Option<Payment>,
    State(gateway): State<Gateway>,
) -> Result<(), StepError> {
    gateway.0.lock().unwrap().push(ctx.key().to_owned());
    Ok(())
}

#[saga_step]
async fn confirm(tx: &mut MemoryConn, order: Order, Output(payment): Output<charge>) -> Result<(), StepError> {
    if order.card == "late" {
        return Err(StepError::reject("too late"));
    }
    tx.add("confirmed", payment.amount)?;
    Ok(())
}

fn create_order() -> Saga<MemoryStore, Order> {
    Saga::named("create-order")
        .input::<Order>()
        .step::<reserve>()
        .step::<charge>()
        .step::<confirm>()
        .build()
        .expect("create-order is a valid saga")
}

fn order(amount: i64, card: &str) -> Order {
    Order { amount, in_stock: 100, card: card.to_owned() }
}

fn business(store: &MemoryStore, key: &str) -> i64 {
    store.read(|table| table.counter(key))
}

#[tokio::test]
async fn a_saga_completes_or_is_undone() {
    let store = MemoryStore::new();
    let gateway = Gateway::default();
    let saga = create_order();
    let runtime = Runtime::builder(store.clone()).saga(&saga).state(gateway.clone()).start().await.expect("it starts");

    let done = runtime.start(&saga, "a", order(3, "good")).await.unwrap();
    assert!(matches!(done.outcome().await.unwrap(), Outcome::Completed { .. }));
    let flaky = runtime.start(&saga, "b", order(4, "flaky")).await.unwrap();
    assert!(matches!(flaky.outcome().await.unwrap(), Outcome::Completed { .. }));
    let bad = runtime.start(&saga, "c", order(5, "bad")).await.unwrap();
    match bad.outcome().await.unwrap() {
        Outcome::Compensated { failed_step, reason, .. } => {
            assert_eq!((failed_step.as_str(), reason.message()), ("charge", "card declined"));
        }
        other => panic!("{other}"),
    }
    let late = runtime.start(&saga, "d", order(6, "late")).await.unwrap();
    match late.outcome().await.unwrap() {
        Outcome::Compensated { failed_step, .. } => assert_eq!(failed_step, "confirm"),
        other => panic!("{other}"),
    }
    let again = runtime.start(&saga, "a", order(3, "good")).await.unwrap();
    assert!(again.already_started());
    let other = runtime.start(&saga, "a", order(4, "good")).await.unwrap_err();
    assert!(other.to_string().contains("`amount` differs"), "{other}");
    assert_eq!(business(&store, "stock"), -7);
    assert_eq!(business(&store, "confirmed"), 7);
    let keys = gateway.0.lock().unwrap().clone();
    assert_eq!(keys, ["a:charge", "b:charge", "b:charge", "b:charge", "d:charge", "d:charge:undo"]);
    let status = runtime.status("b").await.unwrap().unwrap();
    assert_eq!(status.steps[1].attempts, 3);
    assert_eq!(status.history.len(), 2);
    runtime.shutdown().await;
}
