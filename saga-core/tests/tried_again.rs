//! What an operator tries again: the fence grows on, and a doubt is not forgotten.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::sync::{Arc, Mutex};

use saga_core::memory::MemoryStore;
use saga_core::{Outcome, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};

/// What the outside does to each call in turn, and the fences that it was shown.
#[derive(Clone, Default)]
struct Outside {
    answers: Arc<Mutex<Vec<Result<(), StepError>>>>,
    fences: Arc<Mutex<Vec<u64>>>,
    undone: Arc<Mutex<u32>>,
}

impl Outside {
    fn answering(answers: impl IntoIterator<Item = Result<(), StepError>>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), ..Self::default() }
    }
}

#[saga_step(compensate = call_back, retry(attempts = 2, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn ship(ctx: &StepContext, _order: u32, State(outside): State<Outside>) -> Result<u32, StepError> {
    outside.fences.lock().unwrap().push(ctx.fencing_token());
    outside.answers.lock().unwrap().remove(0)?;
    Ok(7)
}

/// It needs the output, so that nobody but a person can decide what becomes of an unknown outcome.
#[saga_compensation]
async fn call_back(
    ctx: &StepContext,
    _order: u32,
    number: u32,
    State(outside): State<Outside>,
) -> Result<(), StepError> {
    assert_eq!((ctx.original_key(), number), ("order:ship", 7));
    *outside.undone.lock().unwrap() += 1;
    Ok(())
}

/// Starts the saga, tries it again each time it is stuck, and answers how often that was.
async fn run(outside: &Outside, retries_max: usize) -> (usize, Outcome) {
    let saga = Saga::named("shipping").input::<u32>().step::<ship>().build().unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).state(outside.clone()).start().await.unwrap();
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    let mut outcome = running.outcome().await.unwrap();
    let mut retries = 0;
    while let (Outcome::Stuck { .. }, true) = (&outcome, retries < retries_max) {
        let status = runtime.status("order").await.unwrap().unwrap();
        runtime.admin().control("order").at_revision(status.revision).retry("the line is back").await.unwrap();
        retries += 1;
        outcome = running.outcome().await.unwrap();
    }
    runtime.shutdown().await;
    (retries, outcome)
}

fn lost() -> Result<(), StepError> {
    Err(StepError::retry("the answer was lost"))
}

fn not_sent() -> Result<(), StepError> {
    Err(StepError::not_sent("connection refused"))
}

#[tokio::test]
async fn a_fence_grows_from_one_command_of_a_step_to_the_next() {
    let outside = Outside::answering([lost(), lost(), lost(), Ok(())]);
    let (retries, outcome) = run(&outside, 1).await;
    assert_eq!(retries, 1);
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    let fences = outside.fences.lock().unwrap().clone();
    assert_eq!(fences.len(), 4);
    assert!(fences.windows(2).all(|pair| pair[0] < pair[1]), "{fences:?}");
}

/// The first call may have happened. That later ones certainly did not says nothing about it.
#[tokio::test]
async fn a_step_that_may_have_happened_stays_so_when_it_is_tried_again() {
    let outside = Outside::answering([lost(), not_sent(), not_sent(), not_sent(), Ok(())]);
    let (retries, outcome) = run(&outside, 2).await;
    assert_eq!(retries, 2, "it was decided without an answer: {outcome:?}");
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(*outside.undone.lock().unwrap(), 0);
}
