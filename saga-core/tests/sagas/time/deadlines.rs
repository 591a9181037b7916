//! Deadlines of sagas, and limits for all attempts of a step.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use saga_core::engine::CompensationCause;
use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint};
use saga_core::saga::Branch;
use saga_core::store::{HistoryKind, Status, StoreError, StoreErrorKind};
use saga_core::{Outcome, Saga, StepContext, StepError, saga_step};
use tokio::time::{Instant, sleep};

use super::outside::*;

#[tokio::test(start_paused = true)]
async fn a_saga_that_is_not_done_in_time_turns_round() {
    let (saga, outside, store) = (asking(), Outside::default(), store());
    let runtime = runtime(&store, &saga, &outside).await;
    let began = Instant::now();
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    let due = runtime.status("order").await.unwrap().unwrap();
    assert_eq!(due.deadline.unwrap().0 - due.summary.started_at.0, 30_000_000);
    let outcome = running.outcome().await.unwrap();
    assert!(began.elapsed() >= 30 * SECOND && began.elapsed() < 31 * SECOND, "{:?}", began.elapsed());
    assert!(matches!(&outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
    assert_eq!(outcome.to_string(), "compensated, because its deadline passed: it was to be done within 30s");
    let mut calls = outside.calls();
    calls.dedup();
    assert_eq!(calls, ["charge", "ask", "refund, since it was to be done within 30s"]);
    let ended = runtime.status("order").await.unwrap().unwrap();
    assert_eq!(ended.deadline, None);
    assert!(ended.history.iter().any(|entry| entry.kind == HistoryKind::Deadline), "{:?}", ended.history);
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// Fails the next commit, once it is told to.
#[derive(Clone, Default)]
struct Outage(Arc<AtomicBool>);

impl CommitHook for Outage {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        let fails = point == CommitPoint::Committing("record") && self.0.swap(false, Ordering::SeqCst);
        let error = || StoreError::new(StoreErrorKind::Unavailable, "record", "the connection broke");
        Box::pin(ready(if fails { CommitFate::Fail(error()) } else { CommitFate::Proceed }))
    }
}

/// One broken connection does not move a deadline by a minute, in which the saga may reach its pivot.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_met_an_outage_passes_soon_after() {
    let (saga, outside, outage) = (asking(), Outside::default(), Outage::default());
    let store = store().with_commit_hook(Arc::new(outage.clone()));
    let runtime = runtime(&store, &saga, &outside).await;
    let began = Instant::now();
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    sleep(29 * SECOND).await;
    outage.0.store(true, Ordering::SeqCst);
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(&outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
    assert!(!outage.0.load(Ordering::SeqCst), "no commit failed");
    assert!(began.elapsed() < 45 * SECOND, "{:?}", began.elapsed());
    runtime.shutdown().await;
}

/// The timer of a saga that has ended is gone with it.
#[tokio::test(start_paused = true)]
async fn a_saga_that_is_done_in_time_leaves_no_deadline() {
    let (outside, store) = (Outside::default(), store());
    let saga =
        Saga::named("quick").input::<u32>().deadline(20 * SECOND).step::<charge>().step::<thank>().build().unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    let mut transaction = store.transaction();
    let started = runtime.start(&saga, "in", 1).in_tx(transaction.conn()).await.unwrap();
    transaction.commit().unwrap();
    started.committed();
    let many = runtime.start_many(&saga, [("a", 1), ("b", 2)]).await;
    for running in many.into_iter().map(Result::unwrap).chain([running, runtime.attach("in").await.unwrap()]) {
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    }
    nothing_is_left(&store).await;
    sleep(MINUTE).await;
    assert_eq!(runtime.admin().query().count().await.unwrap()[&Status::Completed], 4);
    assert_eq!(outside.calls().len(), 8, "{:?}", outside.calls());
    runtime.shutdown().await;
}

/// A start in the caller's transaction can have a delay and a deadline, as any other start.
#[tokio::test(start_paused = true)]
async fn a_start_in_a_transaction_begins_later_and_has_a_deadline() {
    let (outside, store, began) = (Outside::default(), store(), Instant::now());
    let saga = Saga::named("shipping").input::<u32>().step::<charge>().step::<ship>().step::<thank>().build().unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let mut transaction = store.transaction();
    let start = runtime.start(&saga, "order", 1).after(5 * MINUTE).within(20 * SECOND);
    let started = start.in_tx(transaction.conn()).await.unwrap();
    transaction.commit().unwrap();
    started.committed();
    outside.arrived.notified().await;
    assert!(began.elapsed() >= 5 * MINUTE, "{:?}", began.elapsed());
    sleep(MINUTE).await;
    outside.go_on.notify_one();
    let outcome = runtime.attach("order").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

#[tokio::test(start_paused = true)]
async fn from_the_pivot_on_a_deadline_says_nothing() {
    let (outside, store) = (Outside::default(), store());
    let saga = Saga::named("shipping").input::<u32>().deadline(20 * SECOND).step::<charge>().step::<ship>().pivot();
    let saga = saga.step::<thank>().build().unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    outside.arrived.notified().await;
    assert_eq!(runtime.status("order").await.unwrap().unwrap().deadline, None);
    sleep(MINUTE).await;
    outside.go_on.notify_one();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(outside.calls(), ["charge", "ship", "thank"]);
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// A choice that takes no arm comes to the pivot, or to the end, in the commit of the step in front of it.
#[tokio::test(start_paused = true)]
async fn a_choice_that_comes_to_the_pivot_leaves_no_deadline() {
    #[saga_step(no_compensation)]
    async fn wrap(_ctx: &StepContext, _order: u32) -> Result<(), StepError> {
        Ok(())
    }
    for has_pivot in [true, false] {
        let (outside, store) = (Outside::default(), store());
        let saga = Saga::named("shipping").input::<u32>().deadline(20 * SECOND).step::<charge>();
        let saga = saga.choose("gift", |choice| choice.when("wrapped", |_: &u32| false, Branch::step::<wrap>));
        let saga = if has_pivot { saga.step::<ship>().pivot().build() } else { saga.build() }.unwrap();
        let runtime = runtime(&store, &saga, &outside).await;
        let running = runtime.start(&saga, "order", 1).await.unwrap();
        if has_pivot {
            outside.arrived.notified().await;
            outside.go_on.notify_one();
        }
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
        nothing_is_left(&store).await;
        runtime.shutdown().await;
    }
}

/// What is in flight when the deadline passes comes to its end, and is undone.
#[tokio::test(start_paused = true)]
async fn what_is_in_flight_at_the_deadline_is_undone() {
    let (outside, store) = (Outside::default(), store());
    let saga = Saga::named("shipping").input::<u32>().step::<charge>().step::<ship>().step::<thank>().build().unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).within(20 * SECOND).await.unwrap();
    outside.arrived.notified().await;
    while runtime.status("order").await.unwrap().unwrap().summary.status == Status::Running {
        sleep(SECOND).await;
    }
    outside.go_on.notify_one();
    let outcome = running.outcome().await.unwrap();
    assert!(
        matches!(&outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, failed_step, .. } if failed_step == "ship")
    );
    assert_eq!(outside.calls(), ["charge", "ship", "call back", "refund, since it was to be done within 20s"]);
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_counted_from_the_beginning() {
    let (outside, store) = (Outside::default(), store());
    let runtime = runtime(&store, &asking(), &outside).await;
    let began = Instant::now();
    let running = runtime.start(&asking(), "order", 1).after(5 * MINUTE).await.unwrap();
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }
    ));
    assert!(began.elapsed() >= 5 * MINUTE + 30 * SECOND, "{:?}", began.elapsed());
    runtime.start(&asking(), "never", 1).after(5 * MINUTE).await.unwrap();
    runtime.cancel("never", "no longer wanted").await.unwrap();
    assert_eq!(runtime.admin().query().count().await.unwrap()[&Status::Compensated], 2);
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// However many attempts are left, none begins when their time together is over.
#[tokio::test(start_paused = true)]
async fn all_attempts_together_have_their_time() {
    let (outside, store) = (Outside::default(), store());
    let saga = Saga::named("asking").input::<u32>().step::<charge>().step::<ask_for_a_while>().build().unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let began = Instant::now();
    let outcome = runtime.start(&saga, "order", 1).await.unwrap().outcome().await.unwrap();
    let Outcome::Compensated { failed_step, reason, .. } = &outcome else { panic!("{outcome}") };
    assert_eq!(failed_step, "ask-for-a-while");
    assert!(reason.message().ends_with("(given up: all attempts together have 120s)"), "{reason}");
    assert!(began.elapsed() <= 2 * MINUTE + 2 * SECOND, "{:?}", began.elapsed());
    assert!(began.elapsed() > MINUTE, "{:?}", began.elapsed());
    runtime.shutdown().await;
}

/// A restarted saga has the limit that its start named, counted from its own beginning. So has one that is restarted again.
#[tokio::test(start_paused = true)]
async fn a_restarted_saga_has_the_deadline_of_the_one_before() {
    let (outside, store) = (Outside::default(), store());
    let saga = Saga::named("asking").input::<u32>().step::<charge>().step::<ask_carrier>().build().unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let first = runtime.start(&saga, "order", 1).within(10 * SECOND).await.unwrap();
    let outcome = first.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
    for (key, new_key) in [("order", "order-2"), ("order-2", "order-3")] {
        let began = Instant::now();
        runtime.admin().control(key).restart("charge", new_key, "once more").await.unwrap();
        let outcome = runtime.attach(new_key).await.unwrap().outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
        assert!((10 * SECOND..20 * SECOND).contains(&began.elapsed()), "{:?}", began.elapsed());
    }
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}
