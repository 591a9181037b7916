//! Steps that take the inputs of many sagas in one call: one answer for each, whatever becomes of the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{
    Batch, BatchResults, Outcome, Runtime, Saga, Settings, State, StepContext, StepError, saga_compensation, saga_step,
};
use serde::{Deserialize, Serialize};

/// An order; what is said of it makes `reserve` answer otherwise than with success.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    id: u32,
    trouble: Option<Trouble>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Trouble {
    /// It is rejected by its answer.
    Rejected,
    /// Its answer is an error, the first time.
    ErredOnce,
    /// The whole call fails when it is in it.
    Breaks,
    /// The whole call fails when it is in it, the first time.
    BreaksOnce,
    /// The whole call panics when it is in it.
    Panics,
    /// The call takes too long when it is in it, the first time.
    HangsOnce,
    /// What is answered for it cannot be stored.
    TooLong,
    /// The call ends its transaction when it is in it.
    Commits,
}

/// The calls of `reserve`, each with the orders that it had, and what has happened once.
#[derive(Clone, Default)]
struct Seen {
    calls: Arc<Mutex<Vec<Vec<u32>>>>,
    once: Arc<Mutex<Vec<u32>>>,
}

impl Seen {
    fn is_first(&self, id: u32) -> bool {
        let mut once = self.once.lock().unwrap();
        let is_first = !once.contains(&id);
        once.push(id);
        is_first
    }

    fn calls(&self) -> Vec<Vec<u32>> {
        self.calls.lock().unwrap().clone()
    }
}

#[saga_step(compensate = release, timeout = "50ms", retry(attempts = 3, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn reserve(
    tx: &mut MemoryConn,
    orders: Batch<Order>,
    State(seen): State<Seen>,
) -> Result<BatchResults<String>, StepError> {
    seen.calls.lock().unwrap().push(orders.iter().map(|order| order.id).collect());
    let is_good = |order: &Order| !matches!(order.trouble, Some(Trouble::Rejected | Trouble::ErredOnce));
    let erred: Vec<u32> = orders
        .iter()
        .filter(|order| order.trouble == Some(Trouble::ErredOnce) && seen.is_first(order.id))
        .map(|order| order.id)
        .collect();
    for (order, key) in orders.iter().zip(orders.keys()) {
        if is_good(order) || (order.trouble == Some(Trouble::ErredOnce) && !erred.contains(&order.id)) {
            tx.put(&format!("reserved {}", order.id), key)?;
        }
        match order.trouble {
            Some(Trouble::Breaks) => return Err(StepError::reject("it breaks the statement")),
            Some(Trouble::BreaksOnce) if seen.is_first(order.id) => return Err(StepError::retry("a broken statement")),
            Some(Trouble::Panics) => panic!("the warehouse is on fire"),
            Some(Trouble::HangsOnce) if seen.is_first(order.id) => std::future::pending().await,
            Some(Trouble::Commits) => tx.end_transaction(),
            _ => {}
        }
    }
    Ok(orders.map_each(|order| match order.trouble {
        Some(Trouble::Rejected) => Err(StepError::reject("sold out")),
        Some(Trouble::ErredOnce) if erred.contains(&order.id) => Err(StepError::retry("not now")),
        Some(Trouble::TooLong) => Ok("x".repeat(300)),
        _ => Ok(format!("reservation {}", order.id)),
    }))
}

#[saga_compensation]
async fn release(tx: &mut MemoryConn, order: Order, reservation: String) -> Result<(), StepError> {
    assert_eq!(reservation, format!("reservation {}", order.id));
    Ok(tx.delete(&format!("reserved {}", order.id))?)
}

#[saga_step(no_compensation)]
async fn pack(tx: &mut MemoryConn, ctx: &StepContext, order: Order) -> Result<(), StepError> {
    assert_eq!(ctx.saga_key(), format!("order-{}", order.id));
    Ok(tx.put(&format!("packed {}", order.id), tx.transaction().to_be_bytes())?)
}

#[saga_step]
async fn confirm(tx: &mut MemoryConn, orders: Batch<Order>) -> Result<BatchResults<()>, StepError> {
    let transaction = tx.transaction();
    for order in &orders {
        tx.put(&format!("confirmed {}", order.id), transaction.to_be_bytes())?;
    }
    tx.add("calls of confirm", 1)?;
    Ok(orders.map_each(|_| ()))
}

/// What became of some orders.
struct Ran {
    outcomes: BTreeMap<u32, Outcome>,
    rows: BTreeMap<String, Vec<u8>>,
    calls: Vec<Vec<u32>>,
    statistics: saga_core::engine::Statistics,
}

impl Ran {
    fn is_completed(&self, id: u32) -> bool {
        matches!(self.outcomes[&id], Outcome::Completed { .. })
    }

    fn is_compensated(&self, id: u32) -> bool {
        matches!(self.outcomes[&id], Outcome::Compensated { .. })
    }

    fn reserved(&self, id: u32) -> Option<&str> {
        self.rows.get(&format!("reserved {id}")).map(|key| std::str::from_utf8(key).unwrap())
    }
}

/// Runs orders with these ids; those that are named have trouble. They wait in the store when the runtime comes, so that
/// it takes them together.
async fn run(count: u32, trouble: &[(u32, Trouble)], settings: impl FnOnce(&mut Settings)) -> Ran {
    run_saga(
        Saga::named("order").input::<Order>().step::<reserve>().step::<confirm>().build().unwrap(),
        count,
        trouble,
        settings,
    )
    .await
}

async fn run_saga(
    saga: Saga<MemoryStore, Order>,
    count: u32,
    trouble: &[(u32, Trouble)],
    settings: impl FnOnce(&mut Settings),
) -> Ran {
    let store = MemoryStore::new();
    let seen = Seen::default();
    let mut transaction = store.transaction();
    let first = Runtime::builder(store.clone()).saga(&saga).state(seen.clone()).start().await.unwrap();
    for id in 0..count {
        let trouble = trouble.iter().find(|(troubled, _)| *troubled == id).map(|(_, trouble)| *trouble);
        first.start(&saga, format!("order-{id}"), Order { id, trouble }).in_tx(transaction.conn()).await.unwrap();
    }
    first.shutdown().await;
    transaction.commit().unwrap();
    let runtime = Runtime::builder(store.clone())
        .saga(&saga)
        .state(seen.clone())
        .settings(|all| {
            all.payload_bytes_max = 200;
            all.transactions_max = 1;
            settings(all);
        })
        .start()
        .await
        .unwrap();
    let mut outcomes = BTreeMap::new();
    for id in 0..count {
        outcomes.insert(id, runtime.attach(format!("order-{id}")).await.unwrap().outcome().await.unwrap());
    }
    let statistics = runtime.statistics();
    runtime.shutdown().await;
    let rows = store.read(|table| table.rows().map(|(name, value)| (name.to_owned(), value.to_vec())).collect());
    Ran { outcomes, rows, calls: seen.calls(), statistics }
}

#[tokio::test(start_paused = true)]
async fn many_inputs_are_one_call_and_one_answer_each() {
    let ran = run(100, &[], |_| {}).await;
    assert!((0..100).all(|id| ran.is_completed(id)));
    assert_eq!(ran.calls.iter().map(Vec::len).sum::<usize>(), 100, "each order was in one call");
    assert!(ran.calls.iter().any(|call| call.len() >= 50), "they were called together: {:?}", ran.calls);
    for id in 0..100 {
        // The step key of each is its own.
        assert_eq!(ran.reserved(id), Some(&*format!("order-{id}:reserve")));
    }
    assert_eq!(ran.statistics.steps, 200);
    assert_eq!(ran.statistics.splits, 0);
    assert_eq!(ran.statistics.batched, 200, "{:?}", ran.statistics);
}

#[tokio::test(start_paused = true)]
async fn an_answer_concerns_its_own_saga_only() {
    let ran = run(40, &[(7, Trouble::Rejected), (9, Trouble::ErredOnce)], |_| {}).await;
    assert!((0..40).all(|id| id == 7 || ran.is_completed(id)));
    assert!(ran.is_compensated(7), "{:?}", ran.outcomes[&7]);
    assert_eq!(ran.reserved(7), None);
    assert_eq!(ran.reserved(9), Some("order-9:reserve"));
    assert_eq!(ran.statistics.splits, 0, "nothing was taken back");
    let with_nine = ran.calls.iter().filter(|call| call.contains(&9)).count();
    assert_eq!(with_nine, 2, "it was tried again");
    let others = ran.calls.iter().flatten().filter(|id| **id != 9).count();
    assert_eq!(others, 39, "and the others were not");
}

/// The others do not pay for one: each halving is one more call, in the same transaction.
#[tokio::test(start_paused = true)]
async fn one_bad_in_a_hundred_is_found_by_halving() {
    let ran = run(100, &[(42, Trouble::Breaks)], |_| {}).await;
    assert!((0..100).all(|id| id == 42 || ran.is_completed(id)));
    assert!(ran.is_compensated(42), "{:?}", ran.outcomes[&42]);
    assert_eq!(ran.reserved(42), None);
    let calls = ran.calls.iter().filter(|call| call.contains(&42)).count();
    assert!((2..=8).contains(&calls), "it was in {calls} calls");
    assert_eq!(ran.calls.iter().filter(|call| **call == [42]).count(), 1, "alone it is one attempt, and rejected");
    assert!(ran.calls.len() <= 18, "{} calls", ran.calls.len());
    assert_eq!(ran.statistics.rejections, 1);
    assert_eq!(ran.statistics.failures, 0, "what was taken back with it counts for nobody");
}

#[tokio::test(start_paused = true)]
async fn what_breaks_a_batch_is_an_attempt_of_its_own_alone() {
    let ran = run(20, &[(3, Trouble::BreaksOnce), (11, Trouble::Panics)], |_| {}).await;
    assert!((0..20).all(|id| id == 11 || ran.is_completed(id)), "{:?}", ran.outcomes);
    assert!(ran.is_compensated(11), "its attempts are used up: {:?}", ran.outcomes[&11]);
    assert_eq!(ran.calls.iter().filter(|call| **call == [11]).count(), 3, "three attempts, each alone");
    assert_eq!(ran.reserved(11), None);
    assert!((0..20).all(|id| id == 11 || ran.reserved(id).is_some()));
}

/// A handler that is dropped takes its transaction with it; those that were in its call run again in halves.
#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_split() {
    let ran = run(20, &[(5, Trouble::HangsOnce)], |_| {}).await;
    assert!((0..20).all(|id| ran.is_completed(id)));
    assert!((0..20).all(|id| ran.reserved(id).is_some()));
    assert!(ran.statistics.splits >= 1, "{:?}", ran.statistics);
}

/// G8: what cannot be stored makes its own saga stuck, and no other.
#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_stored_is_stuck_alone() {
    let ran = run(20, &[(5, Trouble::TooLong)], |_| {}).await;
    assert!((0..20).all(|id| id == 5 || ran.is_completed(id)));
    assert!(matches!(&ran.outcomes[&5], Outcome::Stuck { step, .. } if step == "reserve"), "{:?}", ran.outcomes[&5]);
    assert_eq!(ran.reserved(5), None, "what it wrote was taken back");
    assert!((0..20).all(|id| id == 5 || ran.reserved(id).is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_its_transaction_makes_only_its_own_saga_stuck() {
    let ran = run(8, &[(5, Trouble::Commits)], |_| {}).await;
    assert!((0..8).all(|id| id == 5 || ran.is_completed(id)), "{:?}", ran.outcomes);
    assert!(matches!(&ran.outcomes[&5], Outcome::Stuck { .. }), "{:?}", ran.outcomes[&5]);
}

/// Sagas whose batch step is done run on in its transaction: to the next batch step together, and each by itself to an
/// ordinary one.
#[tokio::test(start_paused = true)]
async fn what_a_batch_has_done_runs_on_together() {
    let ran = run(30, &[(4, Trouble::Rejected)], |_| {}).await;
    let calls = i64::from_be_bytes(ran.rows["calls of confirm"].as_slice().try_into().unwrap());
    assert!(calls <= 2, "{calls} calls of the second step");
    let saga =
        Saga::named("order").input::<Order>().step::<reserve>().step::<pack>().step::<confirm>().build().unwrap();
    let ran = run_saga(saga, 30, &[(4, Trouble::Rejected)], |_| {}).await;
    let of = |name: &str, id: u32| ran.rows.get(&format!("{name} {id}"));
    let calls = i64::from_be_bytes(ran.rows["calls of confirm"].as_slice().try_into().unwrap());
    assert!(calls <= 2, "{calls} calls of the third step");
    for id in (0..30).filter(|id| *id != 4) {
        assert_eq!(of("packed", id), of("confirmed", id), "order {id}");
    }
    assert_eq!(of("packed", 4), None);
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_no_more_than_its_limit() {
    let ran = run(30, &[], |settings| settings.batch_inputs_max = 4).await;
    assert!((0..30).all(|id| ran.is_completed(id)));
    assert!(ran.calls.iter().all(|call| call.len() <= 4), "{:?}", ran.calls);
}
