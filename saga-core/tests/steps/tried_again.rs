//! What an operator tries again: the fence grows on, and a doubt is not forgotten.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::{Outcome, RetryPolicy, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};

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

#[saga_step(compensate = put_back)]
async fn take(_order: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_compensation]
async fn put_back(_ctx: &StepContext, _order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    *outside.undone.lock().unwrap() += 1;
    Ok(())
}

/// It has no options, so its policy is that of the runtime.
#[saga_step(no_compensation)]
async fn call(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.answers.lock().unwrap().remove(0)
}

fn taken_and_called() -> Saga<MemoryStore, u32> {
    Saga::named("calling").input::<u32>().step::<take>().step::<call>().build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_stuck_undoes_nothing_and_goes_on_when_an_operator_retries_it() {
    let outside = Outside::answering([Err(StepError::stuck("the password is wrong")), Ok(())]);
    let saga = taken_and_called();
    let builder = Runtime::builder(MemoryStore::new()).saga(&saga).state(outside.clone());
    let runtime = builder.start().await.unwrap();
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    let outcome = running.outcome().await.unwrap();
    let Outcome::Stuck { step, reason, .. } = &outcome else { panic!("{outcome}") };
    assert_eq!((&**step, &**reason), ("call", "the password is wrong"));
    assert_eq!(*outside.undone.lock().unwrap(), 0);
    runtime.admin().control("order").retry("the password is right").await.unwrap();
    assert!(matches!(running.closed().await.unwrap(), Outcome::Completed { .. }));
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_waits_as_long_as_the_other_side_asks_for() {
    let hour = Duration::from_hours(1);
    let outside = Outside::answering([Err(StepError::retry_after(hour, "slow down")), Ok(())]);
    let saga = taken_and_called();
    let builder = Runtime::builder(MemoryStore::new()).saga(&saga).state(outside);
    let runtime = builder.start().await.unwrap();
    let began = tokio::time::Instant::now();
    let outcome = runtime.start(&saga, "order", 1).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert!(began.elapsed() >= hour, "the longest pause of the policy is a minute");
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_without_options_has_the_policy_of_the_runtime() {
    let outside = Outside::answering([(); 2].map(|()| Err(StepError::not_sent("refused"))));
    let saga = taken_and_called();
    let retry = RetryPolicy { attempts: Some(2), ..RetryPolicy::DEFAULT };
    let builder = Runtime::builder(MemoryStore::new()).saga(&saga).state(outside.clone());
    let runtime = builder.settings(|settings| settings.retry = retry).start().await.unwrap();
    let outcome = runtime.start(&saga, "order", 1).await.unwrap().outcome().await.unwrap();
    assert_eq!(outcome.to_string(), "stuck at `call`: out of attempts (2): refused");
    assert_eq!(*outside.undone.lock().unwrap(), 0);
    runtime.shutdown().await;
}
