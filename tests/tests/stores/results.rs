//! What sagas return, on every store: after the end, after a restart, to a second start, and why there is none.

use std::time::Duration;

use saga_core::saga::Branch;
use saga_core::store::Status;
use saga_core::{Outcome, Output, Outputs, Runtime, RuntimeError, Saga, SagaFailure, StepError, saga_step};
use saga_tests::Books;
use serde::{Deserialize, Serialize};

const WHY: &str = "it was agreed on the telephone";

/// How the step `charge` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Ends {
    Done,
    Rejected,
    Failing,
    Stuck,
}

#[saga_step(no_compensation)]
async fn reserve<S: Books>(tx: &mut S::Conn, _ends: Ends) -> Result<i64, StepError> {
    S::add(tx, "reserved", 1).await
}

#[saga_step(no_compensation, retry(base = "1h", cap = "1h"))]
async fn charge<S: Books>(tx: &mut S::Conn, ends: Ends) -> Result<String, StepError> {
    match ends {
        Ends::Done => Ok(format!("payment {}", S::add(tx, "charged", 1).await?)),
        Ends::Rejected => Err(StepError::reject("the card is blocked")),
        Ends::Failing => Err(StepError::retry("the bank does not answer")),
        Ends::Stuck => Err(StepError::stuck("the bank has two accounts of that name")),
    }
}

/// Comes after what is returned.
#[saga_step(no_compensation)]
async fn confirm<S: Books>(tx: &mut S::Conn, _ends: Ends) -> Result<(), StepError> {
    S::add(tx, "confirmed", 1).await?;
    Ok(())
}

#[saga_step(no_compensation)]
async fn pack(piece: u32) -> Result<u32, StepError> {
    Ok(piece * 10)
}

fn pay<S: Books>() -> Saga<S, Ends, String> {
    let pay = Saga::named("pay").input::<Ends>().step::<reserve>().step::<charge>().step::<confirm>();
    pay.returns::<charge>().build().unwrap()
}

async fn open<S: Books, R>(store: &S, saga: &Saga<S, Ends, R>) -> Runtime<S> {
    Runtime::builder(store.clone()).saga(saga).start().await.unwrap()
}

/// Runs one saga in a process of its own.
async fn run<S: Books, R: saga_core::step::Payload>(saga: Saga<S, Ends, R>) -> Result<R, SagaFailure> {
    let (store, _kept) = S::fresh().await;
    let runtime = open(&store, &saga).await;
    let result = runtime.start(&saga, "p-1", Ends::Done).await.unwrap().result().await;
    runtime.shutdown().await;
    result
}

async fn a_saga_returns_the_output_of_its_step<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let runtime = open(&store, &pay()).await;
    let running = runtime.start(&pay(), "p-1", Ends::Done).await.unwrap();
    assert_eq!(running.result().await.unwrap(), "payment 1");

    let outcome = running.outcome().await.unwrap();
    let Outcome::Completed { result: Some(result), no_result: None, .. } = &outcome else { panic!("{outcome:?}") };
    assert_eq!((result.as_json(), result.read::<String>().unwrap()), ("\"payment 1\"", "payment 1".to_owned()));
    assert!(result.read::<u32>().is_err());
    assert_eq!(outcome.to_string(), "completed");
    assert!(!format!("{outcome:?}").contains("payment"), "payloads are not printed: {outcome:?}");
    let status = runtime.status("p-1").await.unwrap().unwrap();
    assert_eq!(status.summary.outcome, Some(outcome));
    runtime.shutdown().await;
}

/// The process that ran the steps never asks for the result.
async fn a_result_outlives_its_process<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let first = open(&store, &pay()).await;
    first.start(&pay(), "p-1", Ends::Done).await.unwrap().outcome().await.unwrap();
    first.shutdown().await;

    let second = open(&store, &pay()).await;
    assert_eq!(second.attach_to(&pay(), "p-1").await.unwrap().result().await.unwrap(), "payment 1");
    let again = second.start(&pay(), "p-1", Ends::Done).await.unwrap();
    assert!(again.already_started());
    assert_eq!(again.result().await.unwrap(), "payment 1", "a second start has the result of the first");
    second.attach("p-1").await.unwrap().result().await.unwrap();
    second.shutdown().await;
    assert_eq!(store.counter("charged").await, 1);
}

async fn a_closure_reads_several_outputs<S: Books>() {
    let saga = Saga::named("pay").input::<Ends>().step::<reserve>().step::<charge>().returns_from(
        |ends: &Ends, Output(number): Output<reserve>, Output(payment): Output<charge>| (*ends, number, payment),
    );
    assert_eq!(run::<S, _>(saga.build().unwrap()).await.unwrap(), (Ends::Done, 1, "payment 1".to_owned()));
}

/// The branch that ends last completes the saga, whichever it is.
async fn a_closure_reads_branches_arms_and_lists<S: Books>() {
    let saga = Saga::named("pay")
        .input::<Ends>()
        .parallel(|group| group.branch(Branch::step::<reserve>).branch(Branch::step::<charge>))
        .for_each::<pack, _>(2, |_: &Ends| vec![1, 2, 3])
        .when("is-open", |ends: &Ends| *ends != Ends::Done, Branch::step::<confirm>)
        .returns_from(
            |_: &Ends,
             Output(number): Output<reserve>,
             Output(payment): Output<charge>,
             Outputs(packed): Outputs<pack>,
             confirmed: Option<Output<confirm>>| (number, payment, packed, confirmed.is_some()),
        );
    let returned = run::<S, _>(saga.build().unwrap()).await.unwrap();
    assert_eq!(returned, (1, "payment 1".to_owned(), vec![10, 20, 30], false));
}

async fn failures_have_types<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let pay = pay::<S>();
    let runtime = open(&store, &pay).await;
    let start = |key: &'static str, ends: Ends| runtime.start(&pay, key, ends);

    let failure = start("rejected", Ends::Rejected).await.unwrap().result().await.unwrap_err();
    let SagaFailure::StepFailed { step, reason } = &failure else { panic!("{failure:?}") };
    assert_eq!((step.as_str(), reason.message()), ("charge", "the card is blocked"));
    assert_eq!(failure.to_string(), "the saga was compensated, because `charge` failed: the card is blocked");

    let cancelled = start("cancelled", Ends::Failing).await.unwrap();
    runtime.cancel("cancelled", WHY).await.unwrap();
    let failure = cancelled.result().await.unwrap_err();
    assert!(matches!(&failure, SagaFailure::Cancelled { reason } if reason.message() == WHY), "{failure:?}");

    let late = start("late", Ends::Failing).within(Duration::from_millis(20)).await.unwrap();
    let failure = late.result().await.unwrap_err();
    assert!(matches!(failure, SagaFailure::DeadlinePassed { .. }), "{failure:?}");

    let stuck = start("stuck", Ends::Stuck).await.unwrap();
    let failure = stuck.result().await.unwrap_err();
    let SagaFailure::Stuck { step, reason } = &failure else { panic!("{failure:?}") };
    assert_eq!((step.as_str(), reason.as_str()), ("charge", "the bank has two accounts of that name"));
    runtime.admin().control("stuck").force_completed(WHY).await.unwrap();
    stuck.closed().await.unwrap();
    let failure = stuck.result().await.unwrap_err();
    assert!(matches!(&failure, SagaFailure::Forced { reason } if reason == WHY), "{failure:?}");

    let open_end = start("open", Ends::Stuck).await.unwrap();
    runtime.shutdown().await;
    let failure = open_end.result().await.unwrap_err();
    assert!(matches!(failure, SagaFailure::Runtime(RuntimeError::Ended) | SagaFailure::Stuck { .. }), "{failure:?}");
}

/// An operator says what the step returned, or that it returned nothing.
async fn a_skipped_step_has_the_output_that_it_was_skipped_with<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let runtime = open(&store, &pay()).await;
    for (key, output) in [("with", Some("payment by hand".to_owned())), ("without", None)] {
        let running = runtime.start(&pay::<S>(), key, Ends::Stuck).await.unwrap();
        running.outcome().await.unwrap();
        let admin = runtime.admin();
        let control = admin.control(key);
        match &output {
            Some(output) => control.skip_with(output, WHY).await.unwrap(),
            None => control.skip(WHY).await.unwrap(),
        }
        assert!(matches!(running.closed().await.unwrap(), Outcome::Completed { .. }));
        match (output, running.result().await) {
            (Some(output), result) => assert_eq!(result.unwrap(), output),
            (None, result) => assert_eq!(
                result.unwrap_err().to_string(),
                "the saga completed without a result: an operator skipped its step `charge` without an output"
            ),
        }
    }
    runtime.shutdown().await;
}

/// All steps have taken effect, so the saga completes, and says why it returns nothing.
async fn a_result_that_cannot_be_made_leaves_the_saga_completed<S: Books>() {
    let charged = || Saga::named("pay").input::<Ends>().step::<reserve>().step::<charge>();
    let too_long = charged().returns_from(|_: &Ends, Output(payment): Output<charge>| payment.repeat(100));
    let panics = charged().returns_from(|_: &Ends, Output(payment): Output<charge>| {
        assert!(payment.is_empty(), "it has no number");
        payment
    });
    let cases = [
        (too_long.build().unwrap(), "it has 902 bytes; `payload_bytes_max` allows 500"),
        (panics.build().unwrap(), "the closure of `.returns_from` panicked: it has no number"),
    ];
    for (saga, expected) in cases {
        let (store, _kept) = S::fresh().await;
        let builder = Runtime::builder(store.clone()).saga(&saga);
        let runtime = builder.settings(|settings| settings.payload_bytes_max = 500).start().await.unwrap();
        let running = runtime.start(&saga, "p-1", Ends::Done).await.unwrap();
        let failure = running.result().await.unwrap_err();
        let SagaFailure::NoResult { reason } = &failure else { panic!("{failure:?}") };
        assert!(reason.contains(expected), "{reason}");
        let status = runtime.status("p-1").await.unwrap().unwrap();
        assert_eq!(status.summary.status, Status::Completed);
        assert_eq!(store.counter("charged").await, 1);
        runtime.shutdown().await;
    }
}

saga_tests::on_every_store! {
    a_saga_returns_the_output_of_its_step,
    a_result_outlives_its_process,
    a_closure_reads_several_outputs,
    a_closure_reads_branches_arms_and_lists,
    failures_have_types,
    a_skipped_step_has_the_output_that_it_was_skipped_with,
    a_result_that_cannot_be_made_leaves_the_saga_completed,
}
