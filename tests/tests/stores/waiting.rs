//! Deadlines, sleeps and signals on every store: rows that wait for their time, whoever is there when it comes.

use std::time::Duration;

use saga_core::engine::{CompensationCause, ControlOutcome, RestartOutcome, SagaAdmin, SagaStatus, SignalOutcome};
use saga_core::saga::{Branch, SagaBuilder};
use saga_core::store::Status;
use saga_core::{Outcome, Runtime, Saga, Signal, Signaled, StepError, StepPhase, Wait, saga_step};
use saga_tests::Books;
use serde::{Deserialize, Serialize};

use crate::pieces::{bill, take_out};

/// Longer than any test takes.
const FOREVER: Duration = Duration::from_hours(1);
const SHORT: Duration = Duration::from_millis(30);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Approval {
    By(String),
    NoAnswer,
}

impl Signal for Approval {
    const NAME: &'static str = "approval";
}

/// Comes before the others.
#[derive(Serialize, Deserialize)]
struct Opening;

impl Signal for Opening {
    const NAME: &'static str = "opening";
}

fn by(name: &str) -> Approval {
    Approval::By(name.to_owned())
}

#[saga_step(no_compensation)]
async fn place<S: Books>(
    tx: &mut S::Conn,
    _pieces: u32,
    Signaled(approval): Signaled<Approval>,
) -> Result<(), StepError> {
    match approval {
        Approval::By(name) => S::add(tx, &name, 1).await.map(drop),
        Approval::NoAnswer => Err(StepError::reject("nobody answered")),
    }
}

fn named<S: Books>() -> SagaBuilder<S, u32> {
    Saga::named("order").input::<u32>()
}

/// Waits for an answer as long as that takes.
fn asking<S: Books>() -> SagaBuilder<S, u32> {
    named().step::<take_out>().wait_for::<Approval>(Wait::without_limit()).step::<place>()
}

async fn start<S: Books>(store: &S, saga: &Saga<S, u32>) -> Runtime<S> {
    Runtime::builder(store.clone()).saga(saga).start().await.unwrap()
}

async fn status<S: Books>(runtime: &Runtime<S>, key: &str) -> SagaStatus {
    runtime.status(key).await.unwrap().unwrap()
}

fn phase(status: &SagaStatus, name: &str) -> StepPhase {
    status.steps.iter().find(|step| step.step == name).unwrap().phase
}

async fn until_it_waits<S: Books>(runtime: &Runtime<S>, step: &str) {
    while phase(&status(runtime, "o-1").await, step) != StepPhase::Started {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Nothing of a saga that ended is there any more that could fall due.
async fn nothing_is_left<S: Books>(runtime: &Runtime<S>) {
    let status = status(runtime, "o-1").await;
    assert!(status.summary.status.is_ended());
    assert_eq!(status.deadline, None);
    assert!(status.steps.iter().all(|step| step.due_at.is_none()), "{:?}", status.steps);
}

/// G5: what was done until then is undone.
async fn g5_a_saga_whose_deadline_passes_is_undone<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let saga = asking::<S>().deadline(SHORT).build().unwrap();
    let runtime = start(&store, &saga).await;
    let outcome = runtime.start(&saga, "o-1", 3).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
    assert_eq!(store.counter("taken").await, 0);
    nothing_is_left(&runtime).await;
    assert_eq!(runtime.signal("o-1", "a", &by("ada")).await.unwrap(), SignalOutcome::TooLate);
    runtime.shutdown().await;
}

/// G11: the process that a sleep and a deadline began in is gone when they end.
async fn g11_another_process_wakes_what_slept<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let slept = named::<S>().step::<take_out>().sleep("rest", SHORT).step::<bill>().build().unwrap();
    let first = start(&store, &slept).await;
    drop(first.start(&slept, "o-1", 3).await.unwrap());
    until_it_waits_or_ended(&first).await;
    first.shutdown().await;
    let second = start(&store, &slept).await;
    let outcome = second.attach("o-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!([store.counter("taken").await, store.counter("billed").await], [3, 3]);
    nothing_is_left(&second).await;
    second.shutdown().await;
}

async fn until_it_waits_or_ended<S: Books>(runtime: &Runtime<S>) {
    while phase(&status(runtime, "o-1").await, "take-out") != StepPhase::Done {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A page that has the store and the definition sends signals, and each is known again.
async fn a_signal_counts_once_whoever_sends_it<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let opened = named::<S>().wait_for::<Opening>(Wait::without_limit()).step::<take_out>();
    let saga = opened.wait_for::<Approval>(Wait::without_limit()).step::<place>().build().unwrap();
    let runtime = start(&store, &saga).await;
    let page = SagaAdmin::new(store.clone()).saga(&saga);
    assert!(page.control("o-1").signal("form-1", &by("ada")).await.unwrap_err().to_string().contains("o-1"));

    let running = runtime.start(&saga, "o-1", 3).await.unwrap();
    assert_eq!(page.control("o-1").signal("form-1", &by("ada")).await.unwrap(), SignalOutcome::Buffered);
    assert_eq!(page.control("o-1").signal("form-1", &by("ada")).await.unwrap(), SignalOutcome::Duplicate);
    assert_eq!(page.control("o-1").signal("form-2", &by("bob")).await.unwrap(), SignalOutcome::TooLate);
    runtime.signal("o-1", "opening-1", &Opening).await.unwrap();
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!([store.counter("ada").await, store.counter("bob").await], [1, 0]);
    assert_eq!(page.control("o-1").signal("form-1", &by("ada")).await.unwrap(), SignalOutcome::Duplicate);
    nothing_is_left(&runtime).await;
    runtime.shutdown().await;
}

/// Eight processes send a signal at the same moment.
async fn of_many_signals_at_once_one_counts<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let saga = asking::<S>().build().unwrap();
    let runtime = start(&store, &saga).await;
    let running = runtime.start(&saga, "o-1", 3).await.unwrap();
    until_it_waits(&runtime, "approval").await;
    let sent: Vec<_> = (0..8)
        .map(|number: u32| {
            let page = SagaAdmin::new(store.clone()).saga(&saga);
            tokio::spawn(
                async move { page.control("o-1").signal(number.to_string(), &by(&format!("p{number}"))).await },
            )
        })
        .collect();
    let mut delivered = Vec::new();
    for (number, sent) in sent.into_iter().enumerate() {
        match sent.await.unwrap().unwrap() {
            SignalOutcome::Delivered => delivered.push(number),
            other => assert_eq!(other, SignalOutcome::TooLate),
        }
    }
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(delivered.len(), 1, "{delivered:?}");
    for number in 0..8 {
        assert_eq!(store.counter(&format!("p{number}")).await, i64::from(delivered.contains(&number)));
    }
    runtime.shutdown().await;
}

/// What stands for a message that did not come is decided once, where the limit has passed.
async fn without_a_signal_the_limit_decides<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let wait =
        named::<S>().step::<take_out>().wait_for::<Approval>(Wait::within(SHORT).or(|_: &u32| Approval::NoAnswer));
    let saga = wait.step::<place>().build().unwrap();
    let runtime = start(&store, &saga).await;
    let outcome = runtime.start(&saga, "o-1", 3).await.unwrap().outcome().await.unwrap();
    let Outcome::Compensated { failed_step, .. } = outcome else { panic!("{outcome}") };
    assert_eq!(failed_step, "place");
    assert_eq!(store.counter("taken").await, 0);
    nothing_is_left(&runtime).await;
    runtime.shutdown().await;
}

/// A person holds a saga up that waits for a signal: it is received meanwhile, and counts when the saga goes on.
async fn a_paused_saga_receives_its_signal<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let saga = asking::<S>().build().unwrap();
    let runtime = start(&store, &saga).await;
    let running = runtime.start(&saga, "o-1", 3).await.unwrap();
    until_it_waits(&runtime, "approval").await;
    assert_eq!(runtime.admin().control("o-1").pause("an audit").await.unwrap(), ControlOutcome::Applied);
    assert_eq!(runtime.signal("o-1", "form-1", &by("ada")).await.unwrap(), SignalOutcome::Delivered);
    assert_eq!(runtime.signal("o-1", "form-1", &by("ada")).await.unwrap(), SignalOutcome::Duplicate);
    assert_eq!(store.counter("ada").await, 0);
    assert_eq!(status(&runtime, "o-1").await.summary.status, Status::Paused);
    assert_eq!(runtime.admin().control("o-1").resume("all is well").await.unwrap(), ControlOutcome::Applied);
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(store.counter("ada").await, 1);
    nothing_is_left(&runtime).await;
    runtime.shutdown().await;
}

#[saga_step(no_compensation)]
async fn call(_pieces: u32) -> Result<(), StepError> {
    Err(StepError::stuck("the number is wrong"))
}

/// The limit of a wait passes in a pause, so that its row waits for the end of that. The saga is ended by force instead.
async fn a_paused_saga_is_ended_by_force_though_its_wait_is_over<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let group = named::<S>().step::<take_out>().parallel(|group| {
        group
            .branch(Branch::step::<call>)
            .branch(|branch| branch.wait_for::<Approval>(Wait::within(10 * SHORT).or(|_: &u32| Approval::NoAnswer)))
    });
    let saga = group.build().unwrap();
    let runtime = start(&store, &saga).await;
    let running = runtime.start(&saga, "o-1", 3).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Stuck { .. }));
    let desk = runtime.admin().actor("ann");
    assert_eq!(desk.control("o-1").pause("an audit").await.unwrap(), ControlOutcome::Applied);
    tokio::time::sleep(20 * SHORT).await;
    desk.control("o-1").force_compensated("settled by phone").await.unwrap();
    let outcome = running.closed().await.unwrap();
    assert!(matches!(&outcome, Outcome::Compensated { forced: Some(_), .. }), "{outcome}");
    nothing_is_left(&runtime).await;
    runtime.shutdown().await;
}

/// A cancel ends a sleep and a wait, and takes the deadline with it.
async fn g5_a_cancelled_saga_waits_for_nothing<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let group = named::<S>().deadline(FOREVER).step::<take_out>().parallel(|group| {
        group
            .branch(|branch| branch.sleep("rest", FOREVER))
            .branch(|branch| branch.wait_for::<Approval>(Wait::without_limit()))
    });
    let saga = group.step::<place>().build().unwrap();
    let runtime = start(&store, &saga).await;
    let running = runtime.start(&saga, "o-1", 3).await.unwrap();
    until_it_waits(&runtime, "approval").await;
    assert_eq!(runtime.cancel("o-1", "no longer wanted").await.unwrap(), ControlOutcome::Applied);
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::Cancelled, .. }
    ));
    assert_eq!(store.counter("taken").await, 0);
    nothing_is_left(&runtime).await;
    runtime.shutdown().await;
}

/// A saga that is started instead of another one has a deadline of its own, and waits where it begins.
async fn a_restarted_saga_waits_as_a_new_one_does<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let saga = asking::<S>().deadline(FOREVER).build().unwrap();
    let runtime = start(&store, &saga).await;
    let running = runtime.start(&saga, "o-1", 3).await.unwrap();
    assert!(matches!(
        runtime.signal("o-1", "form-1", &by("ada")).await.unwrap(),
        SignalOutcome::Delivered | SignalOutcome::Buffered
    ));
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));

    let desk = runtime.admin().actor("ann");
    assert_eq!(
        desk.control("o-1").restart("approval", "o-2", "it was another's").await.unwrap(),
        RestartOutcome::Begun
    );
    let again = status(&runtime, "o-2").await;
    assert!(again.deadline.is_some());
    assert_eq!(phase(&again, "approval"), StepPhase::Started);
    assert_eq!(runtime.signal("o-2", "form-1", &by("bob")).await.unwrap(), SignalOutcome::Delivered);
    let outcome = runtime.attach("o-2").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!([store.counter("taken").await, store.counter("ada").await, store.counter("bob").await], [3, 1, 1]);

    assert_eq!(desk.control("o-1").restart("place", "o-3", "once more").await.unwrap(), RestartOutcome::Begun);
    assert!(matches!(runtime.attach("o-3").await.unwrap().outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(store.counter("ada").await, 2, "the signal that the first one went on with was taken over");
    assert_eq!(runtime.signal("o-3", "form-9", &by("eve")).await.unwrap(), SignalOutcome::TooLate);
    runtime.shutdown().await;
}

saga_tests::on_every_store! {
    g5_a_saga_whose_deadline_passes_is_undone,
    g11_another_process_wakes_what_slept,
    a_signal_counts_once_whoever_sends_it,
    of_many_signals_at_once_one_counts,
    without_a_signal_the_limit_decides,
    a_paused_saga_receives_its_signal,
    a_paused_saga_is_ended_by_force_though_its_wait_is_over,
    g5_a_cancelled_saga_waits_for_nothing,
    a_restarted_saga_waits_as_a_new_one_does,
}
