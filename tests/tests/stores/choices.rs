//! Choices on every store: the arm that is recorded is the one that runs and is undone, also in another process.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use saga_core::StepPhase;
use saga_core::engine::SagaStatus;
use saga_core::saga::Branch;
use saga_core::{Outcome, Output, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use saga_tests::Books;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Order {
    pieces: u32,
    is_paid: bool,
}

/// Whether the courier comes, and how often he was called.
#[derive(Clone, Default)]
struct Courier(Arc<Mutex<(bool, u32)>>);

#[saga_step(compensate = put_back)]
async fn take_out<S: Books>(tx: &mut S::Conn, order: Order) -> Result<u32, StepError> {
    S::add(tx, "taken", i64::from(order.pieces)).await?;
    Ok(order.pieces)
}

#[saga_compensation]
async fn put_back<S: Books>(tx: &mut S::Conn, _order: Order, taken: u32) -> Result<(), StepError> {
    S::add(tx, "taken", -i64::from(taken)).await?;
    Ok(())
}

#[saga_step(compensate = unpack)]
async fn pack<S: Books>(tx: &mut S::Conn, order: Order) -> Result<u32, StepError> {
    S::add(tx, "packed", 1).await?;
    Ok(order.pieces * 10)
}

#[saga_compensation]
async fn unpack<S: Books>(tx: &mut S::Conn, order: Order, packed: u32) -> Result<(), StepError> {
    assert_eq!(packed, order.pieces * 10);
    S::add(tx, "packed", -1).await?;
    Ok(())
}

#[saga_step(no_compensation, retry(base = "1ms", cap = "1ms"))]
async fn call_courier(_ctx: &StepContext, order: Order, State(courier): State<Courier>) -> Result<u32, StepError> {
    let (comes, called) = &mut *courier.0.lock().unwrap();
    *called += 1;
    if *comes { Ok(order.pieces) } else { Err(StepError::retry("nobody answers")) }
}

#[saga_step(compensate = unbill)]
async fn bill<S: Books>(
    tx: &mut S::Conn,
    order: Order,
    packed: Option<Output<pack>>,
    ride: Option<Output<call_courier>>,
) -> Result<(Option<u32>, Option<u32>), StepError> {
    let (packed, ride) = (packed.map(|Output(packed)| packed), ride.map(|Output(ride)| ride));
    S::add(tx, "bills", 1).await?;
    if order.is_paid { Ok((packed, ride)) } else { Err(StepError::reject("nobody pays")) }
}

#[saga_compensation]
async fn unbill<S: Books>(
    tx: &mut S::Conn,
    _order: Order,
    _billed: (Option<u32>, Option<u32>),
) -> Result<(), StepError> {
    S::add(tx, "bills", -1).await?;
    Ok(())
}

/// One or more pieces are taken out; three are packed, two are sent by courier, of one nothing is done. `asked` counts how
/// often it is decided.
fn ship<S: Books>(asked: &Arc<AtomicU32>) -> Saga<S, Order> {
    let (first, counted) = (Arc::clone(asked), Arc::clone(asked));
    let is_any = move |order: &Order| {
        first.fetch_add(1, Ordering::SeqCst);
        order.pieces > 0
    };
    let is_large = move |_: &Order, taken: Option<Output<take_out>>| {
        counted.fetch_add(1, Ordering::SeqCst);
        taken.is_some_and(|Output(taken)| taken > 2)
    };
    Saga::named("ship")
        .input::<Order>()
        .when("is-any", is_any, Branch::step::<take_out>)
        .choose("shipping", |choice| {
            choice.when("by-parcel", is_large, Branch::step::<pack>).when(
                "by-courier",
                |order: &Order| order.pieces == 2,
                Branch::step::<call_courier>,
            )
        })
        .step::<bill>()
        .build()
        .unwrap()
}

/// How it ended, and how the books and the saga stand then.
async fn run<S: Books>(order: Order) -> (Outcome, [i64; 3], SagaStatus) {
    let (store, _kept) = S::fresh().await;
    let asked = Arc::default();
    let saga = ship::<S>(&asked);
    let courier = Courier(Arc::new(Mutex::new((true, 0))));
    let runtime = Runtime::builder(store.clone()).saga(&saga).state(courier).start().await.unwrap();
    let outcome = runtime.start(&saga, "o-1", order).await.unwrap().outcome().await.unwrap();
    let status = runtime.status("o-1").await.unwrap().unwrap();
    runtime.shutdown().await;
    let books = [store.counter("taken").await, store.counter("packed").await, store.counter("bills").await];
    (outcome, books, status)
}

fn phase(status: &SagaStatus, name: &str) -> StepPhase {
    status.steps.iter().find(|step| step.step == name).unwrap().phase
}

async fn one_arm_runs_and_the_others_are_passed_by<S: Books>() {
    use StepPhase::{Done, NotTaken};
    for (pieces, books, phases, taken) in [
        (3, [3, 1, 1], [Done, Done, NotTaken], Some("by-parcel")),
        (2, [2, 0, 1], [Done, NotTaken, Done], Some("by-courier")),
        (1, [1, 0, 1], [Done, NotTaken, NotTaken], None),
        (0, [0, 0, 1], [NotTaken, NotTaken, NotTaken], None),
    ] {
        let (outcome, found, status) = run::<S>(Order { pieces, is_paid: true }).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{pieces}: {outcome}");
        assert_eq!(found, books, "{pieces}");
        assert_eq!(["take-out", "pack", "call-courier"].map(|name| phase(&status, name)), phases, "{pieces}");
        let choice = status.steps.iter().find(|step| step.step == "shipping").unwrap();
        assert_eq!(choice.taken.as_deref(), taken, "{pieces}");
    }
}

/// G5: what the arm did that ran is undone, and nothing else.
async fn g5_the_arm_that_ran_is_undone<S: Books>() {
    for pieces in 0..4 {
        let (outcome, books, status) = run::<S>(Order { pieces, is_paid: false }).await;
        assert!(matches!(outcome, Outcome::Compensated { .. }), "{pieces}: {outcome}");
        assert_eq!(books, [0, 0, 0], "{pieces}");
        assert_eq!(phase(&status, "pack"), if pieces == 3 { StepPhase::Undone } else { StepPhase::NotTaken });
    }
}

/// A process that takes the saga up in the middle of an arm knows what was chosen, and asks nobody again.
async fn another_process_knows_what_was_chosen<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let asked = Arc::default();
    let saga = ship::<S>(&asked);
    let courier = Courier::default();
    let start = async |store: S| Runtime::builder(store).saga(&saga).state(courier.clone()).start().await.unwrap();
    let first = start(store.clone()).await;
    let order = Order { pieces: 2, is_paid: true };
    drop(first.start(&saga, "o-1", order).await.unwrap());
    while courier.0.lock().unwrap().1 == 0 {
        tokio::task::yield_now().await;
    }
    first.shutdown().await;
    let asked_before = asked.load(Ordering::SeqCst);
    courier.0.lock().unwrap().0 = true;
    let second = start(store.clone()).await;
    let outcome = second.start(&saga, "o-1", order).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    second.shutdown().await;
    assert_eq!(asked.load(Ordering::SeqCst), asked_before, "what was recorded is not asked again");
    assert_eq!([store.counter("taken").await, store.counter("packed").await, store.counter("bills").await], [2, 0, 1]);
}

saga_tests::on_every_store! {
    one_arm_runs_and_the_others_are_passed_by,
    g5_the_arm_that_ran_is_undone,
    another_process_knows_what_was_chosen,
}
