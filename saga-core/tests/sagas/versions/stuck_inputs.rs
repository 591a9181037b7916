//! What a stuck step is given when it is tried again behind a move to another version.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use saga_core::memory::MemoryStore;
use saga_core::saga::SagaBuilder;
use saga_core::{Migration, Outcome, Runtime, Saga, State, StepContext, StepError, saga_step};

/// A printer, and what it was given to print.
#[derive(Clone, Default)]
struct Printer {
    has_paper: Arc<AtomicBool>,
    given: Arc<Mutex<Vec<u32>>>,
}

#[saga_step(no_compensation)]
async fn take_order(order: u32) -> Result<u32, StepError> {
    Ok(order)
}

#[saga_step]
async fn print_label(_ctx: &StepContext, order: u32, State(printer): State<Printer>) -> Result<(), StepError> {
    printer.given.lock().unwrap().push(order);
    if printer.has_paper.load(Ordering::SeqCst) { Ok(()) } else { Err(StepError::stuck("no paper")) }
}

type Print = Saga<MemoryStore, u32>;

fn printing(version: u32) -> SagaBuilder<MemoryStore, u32> {
    Saga::named("print").input::<u32>().version(version).step::<take_order>()
}

/// The second version gives the step another number.
fn second() -> Print {
    printing(2).step_from::<print_label, _>(|order: &u32| *order + 100).build().unwrap()
}

/// What the step is given while its saga is stuck, moves from `first` to the second version, and is tried again.
async fn given_behind_a_move(first: &Print) -> Vec<u32> {
    let printer = Printer::default();
    let builder = Runtime::builder(MemoryStore::new()).saga(first).saga(&second()).state(printer.clone());
    let runtime = builder.start().await.unwrap();
    let outcome = runtime.start(first, "k-1", 7).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Stuck { .. }), "{outcome}");
    let migration = Migration::between(first, &second()).build().unwrap();
    runtime.admin().control("k-1").migrate(&migration, "the new version").await.unwrap();
    printer.has_paper.store(true, Ordering::SeqCst);
    runtime.admin().control("k-1").retry("there is paper").await.unwrap();
    let outcome = runtime.attach("k-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    runtime.shutdown().await;
    printer.given.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_stuck_step_without_a_mapping_keeps_what_it_was_given() {
    let first = printing(1).step::<print_label>().build().unwrap();
    assert_eq!(given_behind_a_move(&first).await, [7, 7]);
}

/// It was given nothing yet.
#[tokio::test(start_paused = true)]
async fn a_stuck_step_whose_mapping_failed_is_given_what_the_new_mapping_makes() {
    let first = printing(1).step_from::<print_label, _>(|order: &u32| {
        assert_ne!(*order, 7, "the mapping of another day");
        *order
    });
    assert_eq!(given_behind_a_move(&first.build().unwrap()).await, [107]);
}
