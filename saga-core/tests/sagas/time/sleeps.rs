//! Sleeps, and what wakes them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use saga_core::StepPhase;
use saga_core::engine::CompensationCause;
use saga_core::memory::MemoryStore;
use saga_core::saga::Branch;
use saga_core::store::Work as _;
use saga_core::{Outcome, Output, Runtime, Saga, State, StepError, saga_step};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::outside::*;

/// A deadline and a sleep are rows: they outlive the process that wrote them.
#[tokio::test(start_paused = true)]
async fn g11_a_sleep_and_a_deadline_outlive_their_process() {
    let (outside, store) = (Outside::default(), store());
    let sleeping = || {
        let saga = Saga::named("sleeping").input::<u32>().deadline(9 * MINUTE).step::<charge>();
        saga.sleep_from("cool-off", |_: &u32, Output(pause): Output<charge>| pause).step::<thank>().build().unwrap()
    };
    let first = runtime(&store, &sleeping(), &outside).await;
    let began = Instant::now();
    first.start(&sleeping(), "order", 1).await.unwrap();
    while first.status("order").await.unwrap().unwrap().steps[1].due_at.is_none() {
        tokio::time::sleep(SECOND).await;
    }
    first.shutdown().await;
    drop(first);
    let second = runtime(&store, &sleeping(), &outside).await;
    let outcome = second.attach("order").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert!(began.elapsed() >= 2 * MINUTE && began.elapsed() < 2 * MINUTE + 10 * SECOND, "{:?}", began.elapsed());

    let first = runtime(&store, &asking(), &outside).await;
    first.start(&asking(), "late", 1).await.unwrap();
    first.shutdown().await;
    tokio::time::sleep(5 * MINUTE).await;
    let last = runtime(&store, &asking(), &outside).await;
    let outcome = last.attach("late").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
    last.shutdown().await;
    second.shutdown().await;
    nothing_is_left(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_sleep_ends_at_its_moment_by_the_clock_of_the_store() {
    let (outside, store) = (Outside::default(), store());
    let began = Instant::now();
    let now = store.now().await.unwrap();
    let moment = SystemTime::UNIX_EPOCH + Duration::from_micros(now.0.unsigned_abs()) + 3 * MINUTE;
    let early: Result<Saga<MemoryStore, u32>, _> =
        Saga::named("early").input().sleep_until("past", |_: &u32, _: Output<charge>| SystemTime::UNIX_EPOCH).build();
    let problem = early.unwrap_err().to_string();
    assert!(problem.contains("`past` needs the output of `charge`, which does not run before it"), "{problem}");
    let saga = Saga::named("sleeping")
        .input::<u32>()
        .sleep_until("until-then", move |_: &u32| moment)
        .step::<charge>()
        .sleep_until("past", |_: &u32, _: Output<charge>| SystemTime::UNIX_EPOCH)
        .sleep_from("as-long", |order: &u32| *order * SECOND)
        .sleep("no-time", Duration::ZERO)
        .step::<thank>()
        .build()
        .unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let running = runtime.start(&saga, "order", 5).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    let took = began.elapsed();
    assert!(took >= 3 * MINUTE + 5 * SECOND && took < 3 * MINUTE + 9 * SECOND, "{took:?}");
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// A saga that turns round does not wait for a branch that only sleeps.
#[tokio::test(start_paused = true)]
async fn g5_who_sleeps_is_woken_when_the_saga_turns_round() {
    let (outside, store) = (Outside::default(), store());
    let saga = Saga::named("sleeping")
        .input::<u32>()
        .step::<charge>()
        .parallel(|group| {
            group.branch(|branch| branch.sleep("cool-off", 9 * MINUTE).step::<ship>()).branch(Branch::step::<refuse>)
        })
        .build()
        .unwrap();
    let sequence = Saga::named("alone").input::<u32>().step::<charge>().sleep("cool-off", 9 * MINUTE).step::<thank>();
    let sequence = sequence.build().unwrap();
    let runtime =
        Runtime::builder(store.clone()).saga(&saga).saga(&sequence).state(outside.clone()).start().await.unwrap();
    let began = Instant::now();
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::StepFailed, .. }
    ));
    assert_eq!(outside.calls(), ["charge", "refund, since no"]);

    let running = runtime.start(&sequence, "alone", 1).await.unwrap();
    while runtime.status("alone").await.unwrap().unwrap().steps[1].due_at.is_none() {
        tokio::time::sleep(SECOND).await;
    }
    runtime.cancel("alone", "no longer wanted").await.unwrap();
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::Cancelled, .. }
    ));
    assert!(began.elapsed() < MINUTE, "{:?}", began.elapsed());
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// A branch wakes while another one is on its way to fail: the failure is written down all the same.
#[tokio::test(start_paused = true)]
async fn a_failure_counts_also_where_a_branch_woke_meanwhile() {
    #[saga_step(no_compensation)]
    async fn decline(_order: u32, State(woken): State<Arc<Notify>>) -> Result<(), StepError> {
        woken.notified().await;
        Err(StepError::reject("no"))
    }
    let (store, woken) = (store(), Arc::new(Notify::new()));
    let group = Saga::named("woken")
        .input::<u32>()
        .parallel(|group| group.branch(|branch| branch.sleep("a-moment", SECOND)).branch(Branch::step::<decline>));
    let saga = group.build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&saga).state(Arc::clone(&woken)).start().await.unwrap();
    let began = Instant::now();
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    while runtime.status("order").await.unwrap().unwrap().steps[0].phase != StepPhase::Done {
        tokio::time::sleep(SECOND).await;
    }
    woken.notify_one();
    let outcome = running.outcome().await.unwrap();
    assert_eq!(outcome.to_string(), "compensated, because `decline` failed: no");
    assert!(began.elapsed() < 5 * SECOND, "{:?}", began.elapsed());
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}
