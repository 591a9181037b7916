//! Consecutive steps of one saga that share a transaction, and what becomes of that when one of them fails.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Outcome, Runtime, Saga, Settings, State, StepContext, StepError, saga_compensation, saga_step};

/// How the step that is looked at ends, call by call; behind the last it ends well.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<Vec<End>>>);

#[derive(Clone, Copy)]
enum End {
    Erred,
    Rejected,
    Panicked,
    TimedOut,
}

/// Notes in which transaction a step ran.
fn note(tx: &mut MemoryConn, step: &str) -> Result<(), StepError> {
    let transaction = tx.transaction();
    Ok(tx.put(step, transaction.to_be_bytes())?)
}

#[saga_step(compensate = unreserve)]
async fn reserve(tx: &mut MemoryConn, _order: u32) -> Result<u32, StepError> {
    note(tx, "reserve")?;
    Ok(1)
}

#[saga_compensation]
async fn unreserve(tx: &mut MemoryConn, _order: u32, _reserved: u32) -> Result<(), StepError> {
    note(tx, "unreserve")
}

#[saga_step(compensate = unpack)]
async fn pack(tx: &mut MemoryConn, _order: u32) -> Result<u32, StepError> {
    note(tx, "pack")?;
    Ok(2)
}

#[saga_compensation]
async fn unpack(tx: &mut MemoryConn, _order: u32, _packed: u32) -> Result<(), StepError> {
    note(tx, "unpack")
}

#[saga_step(
    no_compensation,
    timeout = "20ms",
    retry(attempts = 3, base = "1ms", cap = "1ms"),
    on_exhausted = "compensate"
)]
async fn label(tx: &mut MemoryConn, _order: u32, State(script): State<Script>) -> Result<(), StepError> {
    note(tx, "label")?;
    let end = script.0.lock().unwrap().pop();
    match end {
        None => Ok(()),
        Some(End::Erred) => Err(StepError::retry("the printer is out of paper")),
        Some(End::Rejected) => Err(StepError::reject("no such address")),
        Some(End::Panicked) => panic!("the printer is on fire"),
        Some(End::TimedOut) => std::future::pending().await,
    }
}

#[saga_step(no_compensation)]
async fn ring(ctx: &StepContext, _order: u32) -> Result<(), StepError> {
    assert_eq!(ctx.attempt(), 1);
    Ok(())
}

#[saga_step]
async fn confirm(tx: &mut MemoryConn, _order: u32) -> Result<(), StepError> {
    note(tx, "confirm")
}

/// What became of a saga: its outcome, and in which transaction each of its steps ran.
struct Ran {
    outcome: Outcome,
    transactions: BTreeMap<&'static str, i64>,
    statistics: saga_core::engine::Statistics,
}

async fn run(ends: &[End], settings: impl FnOnce(&mut Settings)) -> Ran {
    let saga = Saga::named("parcel").input::<u32>();
    let saga = saga.step::<reserve>().step::<pack>().step::<label>().step::<ring>().step::<confirm>().build().unwrap();
    let script = Script(Arc::new(Mutex::new(ends.iter().rev().copied().collect())));
    let builder = Runtime::builder(MemoryStore::new()).saga(&saga).state(script).settings(settings);
    let runtime = builder.start().await.unwrap();
    let outcome = runtime.start(&saga, "order-7", 7).await.unwrap().outcome().await.unwrap();
    let names = ["reserve", "pack", "label", "confirm", "unreserve", "unpack"];
    let transactions = runtime.store().read(|table| {
        let noted = names.into_iter().filter(|name| table.get(name).is_some());
        noted.map(|name| (name, table.counter(name))).collect()
    });
    let statistics = runtime.statistics();
    runtime.shutdown().await;
    Ran { outcome, transactions, statistics }
}

#[tokio::test]
async fn consecutive_steps_share_a_transaction_up_to_a_call() {
    let ran = run(&[], |_| {}).await;
    assert!(matches!(ran.outcome, Outcome::Completed { .. }), "{:?}", ran.outcome);
    let of = |step| ran.transactions[step];
    assert_eq!([of("pack"), of("label")], [of("reserve"); 2]);
    assert_ne!(of("confirm"), of("reserve"), "a call to the outside lies between them");
    assert_eq!(ran.statistics.steps, 5);
}

#[tokio::test]
async fn run_on_max_bounds_the_steps_of_a_transaction() {
    let ran = run(&[], |settings| settings.steps_per_transaction_max = 1).await;
    let of = |step| ran.transactions[step];
    assert!(of("reserve") < of("pack") && of("pack") < of("label"), "{:?}", ran.transactions);
    let ran = run(&[], |settings| settings.steps_per_transaction_max = 2).await;
    let of = |step| ran.transactions[step];
    assert!(of("reserve") == of("pack") && of("pack") < of("label"), "{:?}", ran.transactions);
}

/// What was done before it is kept, and its attempts are its own.
#[tokio::test]
async fn a_step_that_errs_is_left_for_a_transaction_of_its_own() {
    for end in [End::Erred, End::Panicked] {
        let ran = run(&[end], |_| {}).await;
        assert!(matches!(ran.outcome, Outcome::Completed { .. }), "{:?}", ran.outcome);
        let of = |step| ran.transactions[step];
        assert!(of("reserve") == of("pack") && of("pack") < of("label"), "{:?}", ran.transactions);
    }
}

#[tokio::test]
async fn a_step_that_goes_on_erring_has_all_its_attempts_and_no_more() {
    // The one within the run is the first of three.
    let ran = run(&[End::Erred; 2], |_| {}).await;
    assert!(matches!(ran.outcome, Outcome::Completed { .. }), "{:?}", ran.outcome);
    assert_eq!(ran.statistics.failures, 2);
    let ran = run(&[End::Erred; 3], |_| {}).await;
    assert!(matches!(ran.outcome, Outcome::Compensated { .. }), "{:?}", ran.outcome);
}

#[tokio::test]
async fn g5_a_rejection_undoes_what_was_done_before_it_in_the_same_transaction() {
    let ran = run(&[End::Rejected], |_| {}).await;
    let Outcome::Compensated { failed_step, .. } = &ran.outcome else { panic!("{:?}", ran.outcome) };
    assert_eq!(failed_step, "label");
    let of = |step| ran.transactions[step];
    assert_eq!(of("reserve"), of("pack"));
    assert!(!ran.transactions.contains_key("label"), "what it wrote was rolled back");
    assert_eq!(of("unpack"), of("unreserve"), "undos run on as well");
    assert_eq!((ran.statistics.steps, ran.statistics.undos, ran.statistics.rejections), (2, 2, 1));
}

/// Dropped in the middle, it takes the transaction with it: the others run again.
#[tokio::test]
async fn a_step_that_takes_too_long_costs_the_run_and_nothing_else() {
    let ran = run(&[End::TimedOut], |_| {}).await;
    assert!(matches!(ran.outcome, Outcome::Completed { .. }), "{:?}", ran.outcome);
    let of = |step| ran.transactions[step];
    assert!(of("reserve") < of("pack"), "the first has a commit of its own now: {:?}", ran.transactions);
    assert_eq!(ran.statistics.steps, 5);
}
