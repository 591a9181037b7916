//! An external step whose outcome is asked for before it is called again.
#![cfg(feature = "macros")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use saga_core::memory::MemoryStore;
use saga_core::{
    Outcome, Resolved, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_resolution, saga_step,
};

/// A gateway that charges, and answers or not.
#[derive(Clone, Default)]
struct Gateway(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    /// How the next calls go.
    calls: VecDeque<Call>,
    /// What the next questions are answered; then the truth.
    answers: VecDeque<Answer>,
    charged: BTreeMap<String, u64>,
    told: Vec<&'static str>,
}

#[derive(Clone, Copy)]
enum Call {
    /// It charges, and its answer is lost.
    AnswerLost,
    /// It never arrives, which nobody can tell.
    Lost,
}

#[derive(Clone, Copy)]
enum Answer {
    NotYet,
    Broken,
    Declined,
}

impl Gateway {
    fn with(calls: &[Call], answers: &[Answer]) -> Self {
        let inside = Inside { calls: calls.to_vec().into(), answers: answers.to_vec().into(), ..Inside::default() };
        Self(Arc::new(Mutex::new(inside)))
    }

    fn charge(&self, key: &str, cents: u64) -> Result<String, StepError> {
        let mut inside = self.0.lock().unwrap();
        inside.told.push("charge");
        let call = inside.calls.pop_front();
        if !matches!(call, Some(Call::Lost)) {
            inside.charged.insert(key.to_owned(), cents);
        }
        if call.is_some() { Err(std::io::Error::other("no answer"))? } else { Ok(format!("charged {cents}")) }
    }

    fn find(&self, key: &str) -> Result<Resolved<String>, StepError> {
        let mut inside = self.0.lock().unwrap();
        inside.told.push("find");
        match inside.answers.pop_front() {
            Some(Answer::NotYet) => Ok(Resolved::Pending),
            Some(Answer::Broken) => Err(std::io::Error::other("no answer"))?,
            Some(Answer::Declined) => Err(StepError::reject("declined")),
            None => Ok(match inside.charged.get(key) {
                Some(cents) => Resolved::Done(format!("charged {cents}")),
                None => Resolved::NotDone,
            }),
        }
    }

    fn told(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().told.clone()
    }

    fn charges(&self) -> usize {
        self.0.lock().unwrap().charged.len()
    }
}

#[saga_step(compensate = refund, resolve = find_charge, retry(attempts = 2, base = "1ms"), timeout = "10s", on_exhausted = "compensate")]
async fn charge(ctx: &StepContext, cents: u64, State(gateway): State<Gateway>) -> Result<String, StepError> {
    gateway.charge(ctx.key(), cents)
}

#[saga_resolution(retry(attempts = 3, base = "1ms"), timeout = "1s")]
async fn find_charge(
    ctx: &StepContext,
    _cents: u64,
    State(gateway): State<Gateway>,
) -> Result<Resolved<String>, StepError> {
    gateway.find(ctx.key())
}

/// It needs the output, so that an unknown outcome would be stuck.
#[saga_compensation]
async fn refund(
    ctx: &StepContext,
    _cents: u64,
    _charged: String,
    State(gateway): State<Gateway>,
) -> Result<(), StepError> {
    let mut inside = gateway.0.lock().unwrap();
    inside.told.push("refund");
    inside.charged.remove(ctx.original_key());
    Ok(())
}

#[saga_step(no_compensation)]
async fn check(cents: u64) -> Result<(), StepError> {
    if cents > 100 { Err(StepError::reject("too much")) } else { Ok(()) }
}

async fn run(gateway: &Gateway, cents: u64) -> Outcome {
    let saga: Saga<MemoryStore, u64> =
        Saga::named("pay").input::<u64>().step::<charge>().step::<check>().build().unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).state(gateway.clone()).start().await.unwrap();
    let outcome = runtime.start(&saga, "o-1", cents).await.unwrap().outcome().await.unwrap();
    runtime.shutdown().await;
    outcome
}

fn is_completed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Completed { .. })
}

#[tokio::test(start_paused = true)]
async fn what_was_done_without_an_answer_is_found_and_not_done_again() {
    let gateway = Gateway::with(&[Call::AnswerLost], &[]);
    assert!(is_completed(&run(&gateway, 7).await));
    assert_eq!(gateway.told(), ["charge", "find"]);
}

#[tokio::test(start_paused = true)]
async fn what_did_not_happen_is_called_again_at_once() {
    let gateway = Gateway::with(&[Call::Lost], &[]);
    assert!(is_completed(&run(&gateway, 7).await));
    assert_eq!(gateway.told(), ["charge", "find", "charge"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_found_is_undone_with_its_output() {
    let gateway = Gateway::with(&[Call::AnswerLost], &[Answer::NotYet, Answer::Broken]);
    let outcome = run(&gateway, 700).await;
    assert!(matches!(&outcome, Outcome::Compensated { failed_step, .. } if failed_step == "check"), "{outcome}");
    assert_eq!((gateway.told(), gateway.charges()), (vec!["charge", "find", "find", "find", "refund"], 0));
}

/// Out of calls, it is asked once more behind the settle time; then it certainly did not happen.
#[tokio::test(start_paused = true)]
async fn what_certainly_did_not_happen_fails_without_an_undo() {
    let gateway = Gateway::with(&[Call::Lost, Call::Lost], &[]);
    let began = tokio::time::Instant::now();
    let outcome = run(&gateway, 7).await;
    assert!(matches!(&outcome, Outcome::Compensated { failed_step, .. } if failed_step == "charge"), "{outcome}");
    assert_eq!(gateway.told(), ["charge", "find", "charge", "find", "find"]);
    assert!(began.elapsed() >= std::time::Duration::from_secs(20), "twice the time limit: {:?}", began.elapsed());
}

/// A call that had no answer may land until the settle time is over, whatever an operator wants.
#[tokio::test(start_paused = true)]
async fn g5_a_call_that_lands_after_a_cancel_is_undone() {
    let gateway = Gateway::with(&[Call::Lost, Call::Lost], &[]);
    let saga: Saga<MemoryStore, u64> = Saga::named("pay").input::<u64>().step::<charge>().build().unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).state(gateway.clone()).start().await.unwrap();
    let running = runtime.start(&saga, "o-1", 7).await.unwrap();
    while gateway.told() != ["charge", "find", "charge", "find"] {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let admin = runtime.admin();
    while runtime.status("o-1").await.unwrap().unwrap().steps[0].due_at.is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(admin.control("o-1").retry_now("hurry").await.unwrap(), 0, "it waits for a call that may land");
    admin.control("o-1").cancel("not wanted any more").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(gateway.told().len(), 4, "{:?}", gateway.told());
    gateway.0.lock().unwrap().charged.insert("o-1:charge".to_owned(), 7);
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!((gateway.told(), gateway.charges()), (vec!["charge", "find", "charge", "find", "find", "refund"], 0));
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_other_side_has_refused_is_rejected() {
    let gateway = Gateway::with(&[Call::Lost], &[Answer::Declined]);
    let outcome = run(&gateway, 7).await;
    let Outcome::Compensated { failed_step, reason, .. } = &outcome else { panic!("{outcome}") };
    assert_eq!((failed_step.as_str(), reason.message()), ("charge", "declined"));
    assert_eq!(gateway.told(), ["charge", "find"]);
}

/// Nobody ever says what became of it, within the budget of both: it needs a person.
#[tokio::test(start_paused = true)]
async fn what_nobody_can_say_remains_unknown() {
    let gateway = Gateway::with(&[Call::AnswerLost], &[Answer::NotYet; 9]);
    let outcome = run(&gateway, 7).await;
    let Outcome::Stuck { step, reason, .. } = &outcome else { panic!("{outcome}") };
    assert_eq!(step, "charge");
    assert!(reason.contains("may or may not have happened"), "{reason}");
    assert_eq!(gateway.told(), ["charge", "find", "find", "find", "find"]);
}

/// It may be called for ten seconds from its first failure on, without a limit of attempts.
#[saga_step(compensate = refund, resolve = find_charge, retry(base = "1s", cap = "1s"), give_up_after = "10s", timeout = "10s", on_exhausted = "compensate")]
async fn charge_in_time(ctx: &StepContext, cents: u64, State(gateway): State<Gateway>) -> Result<String, StepError> {
    gateway.charge(ctx.key(), cents)
}

/// The limit for all attempts ends those of a step with a resolution, too: behind the settle time it certainly did not happen.
#[tokio::test(start_paused = true)]
async fn a_step_that_never_succeeds_is_given_up_in_time() {
    let gateway = Gateway::with(&[Call::Lost; 10_000], &[]);
    let saga: Saga<MemoryStore, u64> = Saga::named("pay").input::<u64>().step::<charge_in_time>().build().unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).state(gateway.clone()).start().await.unwrap();
    let began = tokio::time::Instant::now();
    let outcome = runtime.start(&saga, "o-1", 7).await.unwrap().outcome().await.unwrap();
    assert!(
        matches!(&outcome, Outcome::Compensated { failed_step, .. } if failed_step == "charge-in-time"),
        "{outcome}"
    );
    let took = began.elapsed();
    assert!(took < std::time::Duration::from_mins(1), "it was given up after {took:?}");
    assert_eq!(gateway.told().last(), Some(&"find"), "{:?}", gateway.told());
    runtime.shutdown().await;
}
