//! What an operator can do with a stuck saga: each action names the revision that was seen, acts once, and is kept with
//! its reason.

use saga_core::StepPhase;
use saga_core::engine::{RuntimeError, SagaControl};
use saga_core::store::{HistoryKind, Status};
use saga_core::{Outcome, Output, Runtime, Saga, StepError, saga_step};
use saga_tests::{Act, Fixture, Order, Shop, book, eventually, on_both_stores};

/// A saga whose `ship` may have happened, and cannot be undone without knowing.
async fn stuck_at_ship<S: Shop>(fixture: &Fixture<S>, runtime: &Runtime<S>, key: &str) {
    fixture.world.always(&format!("{key}:ship"), Act::LoseAnswer);
    let outcome = fixture.run(runtime, key).await;
    assert!(matches!(&outcome, Outcome::Stuck { step, .. } if step == "ship"), "{outcome}");
}

/// A saga that compensates, and whose `refund` does not work.
async fn stuck_at_refund<S: Shop>(fixture: &Fixture<S>, runtime: &Runtime<S>, key: &str) {
    fixture.world.plan(&format!("{key}:ship"), [Act::Reject]);
    fixture.world.always(&format!("{key}:charge:undo"), Act::Reject);
    let outcome = fixture.run(runtime, key).await;
    assert!(matches!(&outcome, Outcome::Stuck { step, .. } if step == "charge"), "{outcome}");
}

async fn operator<S: Shop>(fixture: &Fixture<S>, runtime: &Runtime<S>, key: &str) -> SagaControl<S> {
    let revision = fixture.status(runtime, key).await.revision;
    runtime.admin().control(key).at_revision(revision)
}

async fn outcome<S: Shop>(runtime: &Runtime<S>, key: &str) -> Outcome {
    runtime.attach(key).await.unwrap().closed().await.unwrap()
}

async fn phases<S: Shop>(fixture: &Fixture<S>, runtime: &Runtime<S>, key: &str) -> Vec<StepPhase> {
    fixture.status(runtime, key).await.steps.into_iter().map(|step| step.phase).collect()
}

/// What operators did, as the history tells it.
async fn audit<S: Shop>(fixture: &Fixture<S>, runtime: &Runtime<S>, key: &str) -> Vec<String> {
    let history = fixture.status(runtime, key).await.history;
    history.into_iter().filter(|entry| entry.kind == HistoryKind::Operator).map(|entry| entry.detail).collect()
}

async fn a_stuck_step_is_tried_again<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    stuck_at_ship(&fixture, &runtime, "k").await;
    fixture.world.repair("k:ship");
    operator(&fixture, &runtime, "k").await.retry("the carrier is back").await.unwrap();
    assert!(matches!(outcome(&runtime, "k").await, Outcome::Completed { forced: None, .. }));
    assert_eq!(audit(&fixture, &runtime, "k").await, ["retry: the carrier is back"]);
    assert_eq!(fixture.world.calls_of("k:ship"), 4, "fresh attempts, with the same key");
    assert_eq!((fixture.store.total("k:book").await, fixture.store.total("k:finish").await), (1, 1));
}

/// The attempts before the retry may have happened: a rejection now does not say that they did not.
async fn a_rejection_after_a_retry_is_still_unknown<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    stuck_at_ship(&fixture, &runtime, "k").await;
    fixture.world.repair("k:ship");
    fixture.world.plan("k:ship", [Act::Reject]);
    operator(&fixture, &runtime, "k").await.retry("perhaps now").await.unwrap();
    let status = eventually("the saga is stuck again", async || {
        let status = fixture.status(&runtime, "k").await;
        (status.summary.status == Status::Stuck && fixture.world.calls_of("k:ship") == 4).then_some(status)
    });
    let Some(Outcome::Stuck { reason, .. }) = status.await.summary.outcome else { panic!("it is stuck") };
    assert!(reason.contains("it may or may not have happened") && reason.contains("declined"), "{reason}");
    assert_eq!(fixture.world.standing("k:ship"), 1, "what stands outside was not forgotten");
}

async fn a_stuck_undo_is_tried_again<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    stuck_at_refund(&fixture, &runtime, "k").await;
    assert_eq!(fixture.world.calls_of("k:charge:undo"), 1, "a compensation that rejects is not tried again");
    fixture.world.repair("k:charge:undo");
    operator(&fixture, &runtime, "k").await.retry("the bank is open").await.unwrap();
    assert!(matches!(outcome(&runtime, "k").await, Outcome::Compensated { forced: None, .. }));
    assert_eq!(fixture.world.standing("k:charge"), 0);
    assert_eq!(fixture.store.total("booked").await, 0);
    assert_eq!(audit(&fixture, &runtime, "k").await, ["retry: the bank is open"]);
}

async fn a_stuck_step_is_skipped<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    stuck_at_ship(&fixture, &runtime, "k").await;
    operator(&fixture, &runtime, "k").await.skip("picked up at the door").await.unwrap();
    assert!(matches!(outcome(&runtime, "k").await, Outcome::Completed { forced: None, .. }));
    let expected = [StepPhase::Done, StepPhase::Done, StepPhase::Skipped, StepPhase::Done];
    assert_eq!(phases(&fixture, &runtime, "k").await, expected);
    assert_eq!(audit(&fixture, &runtime, "k").await, ["skip: picked up at the door"]);
}

/// What was skipped counts as done without an effect: it is not undone when a later step fails.
async fn a_skipped_step_is_not_undone<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    stuck_at_ship(&fixture, &runtime, "k").await;
    fixture.world.plan("k:finish", [Act::Reject]);
    operator(&fixture, &runtime, "k").await.skip("picked up at the door").await.unwrap();
    assert!(
        matches!(outcome(&runtime, "k").await, Outcome::Compensated { failed_step, .. } if failed_step == "finish")
    );
    assert_eq!(fixture.world.calls_of("k:ship:undo"), 0);
    assert_eq!((fixture.world.standing("k:charge"), fixture.store.total("booked").await), (0, 0));
}

async fn a_stuck_undo_is_skipped<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    stuck_at_refund(&fixture, &runtime, "k").await;
    operator(&fixture, &runtime, "k").await.skip("refunded in cash").await.unwrap();
    assert!(matches!(outcome(&runtime, "k").await, Outcome::Compensated { forced: None, .. }));
    let expected = [StepPhase::Undone, StepPhase::UndoSkipped, StepPhase::Rejected, StepPhase::Ready];
    assert_eq!(phases(&fixture, &runtime, "k").await, expected);
    assert_eq!((fixture.world.standing("k:charge"), fixture.store.total("booked").await), (1, 0));
}

#[saga_step]
async fn pay<S: Shop>(conn: &mut S::Conn, order: Order) -> Result<(), StepError> {
    S::add(conn, "paid", order.amount)?;
    Ok(())
}

/// A step whose output is taken later is skipped with an output that fits.
async fn an_output_is_given_for_a_skipped_step<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let saga = Saga::<S, ()>::named("payment").input::<Order>().step::<book>();
    let saga = saga
        .step_from::<pay, _>(|order: &Order, Output(booked): Output<book>| Order { amount: booked, ..order.clone() });
    let saga = saga.build().unwrap();
    let runtime = fixture.builder().saga(&saga).start().await.unwrap();
    fixture.world.plan("k:book", [Act::EndTransaction]);
    let stuck = runtime.start(&saga, "k", Order::of(1)).await.unwrap();
    assert!(matches!(stuck.outcome().await.unwrap(), Outcome::Stuck { .. }));

    let operator = operator(&fixture, &runtime, "k").await;
    let refused = operator.skip("booked by hand").await.unwrap_err().to_string();
    assert!(refused.contains("the step `pay` takes the output of `book`; skip it with `skip_with`"), "{refused}");
    let refused = operator.skip_with(&"seven", "booked by hand").await.unwrap_err().to_string();
    assert!(refused.contains("`book` cannot have this output"), "{refused}");
    assert!(audit(&fixture, &runtime, "k").await.is_empty(), "what was refused did not happen");
    operator.skip_with(&7, "booked by hand").await.unwrap();
    assert!(matches!(outcome(&runtime, "k").await, Outcome::Completed { .. }));
    assert_eq!((fixture.store.total("paid").await, fixture.store.total("booked").await), (7, 0));
}

async fn a_stuck_saga_is_ended_as_it_is<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    stuck_at_ship(&fixture, &runtime, "done").await;
    operator(&fixture, &runtime, "done").await.force_completed("all is well").await.unwrap();
    let ended = outcome(&runtime, "done").await;
    assert!(matches!(&ended, Outcome::Completed { forced: Some(why), .. } if why == "all is well"), "{ended}");
    assert_eq!(fixture.world.calls_of("done:finish"), 0);
    assert_eq!(audit(&fixture, &runtime, "done").await, ["force as completed: all is well"]);

    stuck_at_refund(&fixture, &runtime, "undone").await;
    operator(&fixture, &runtime, "undone").await.force_compensated("settled by phone").await.unwrap();
    let ended = outcome(&runtime, "undone").await;
    assert!(matches!(&ended, Outcome::Compensated { forced: Some(why), .. } if why == "settled by phone"), "{ended}");
    assert_eq!(fixture.world.calls_of("undone:book:undo"), 0, "nothing is undone any more");
    assert_eq!(audit(&fixture, &runtime, "undone").await, ["force as compensated: settled by phone"]);

    // The end is the same for a runtime that comes later.
    runtime.shutdown().await;
    let runtime = fixture.runtime().await;
    assert!(matches!(outcome(&runtime, "done").await, Outcome::Completed { forced: Some(_), .. }));
    assert!(runtime.admin().query().orphaned(9).await.unwrap().is_empty());
}

/// The same action twice acts once, and one on what was seen before the saga moved changes nothing.
async fn an_action_names_what_it_saw<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    stuck_at_refund(&fixture, &runtime, "k").await;
    let seen = operator(&fixture, &runtime, "k").await;
    fixture.world.repair("k:charge:undo");
    seen.retry("again").await.unwrap();
    let moved = seen.retry("again").await.unwrap_err();
    assert!(matches!(&moved, RuntimeError::Moved { key, .. } if key == "k"), "{moved}");
    assert!(moved.to_string().contains("the saga `k` has moved since: it is "), "{moved}");
    assert!(matches!(outcome(&runtime, "k").await, Outcome::Compensated { .. }));
    for refused in [
        seen.skip("late").await.unwrap_err(),
        seen.force_completed("late").await.unwrap_err(),
        seen.force_compensated("late").await.unwrap_err(),
        seen.skip_with(&1, "late").await.unwrap_err(),
    ] {
        assert!(matches!(refused, RuntimeError::Moved { .. }), "{refused}");
    }
    assert_eq!(audit(&fixture, &runtime, "k").await, ["retry: again"]);
    assert_eq!(fixture.world.calls_of("k:charge:undo"), 2);
}

/// Many operators at once: one of them acts.
async fn of_many_operators_one_acts<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    stuck_at_ship(&fixture, &runtime, "k").await;
    fixture.world.repair("k:ship");
    let revision = fixture.status(&runtime, "k").await.revision;
    let act =
        |runtime: Runtime<S>| async move { runtime.admin().control("k").at_revision(revision).retry("at once").await };
    let acts: Vec<_> = (0..8).map(|_| tokio::spawn(act(runtime.clone()))).collect();
    let mut acted = 0;
    for act in acts {
        match act.await.unwrap() {
            Ok(()) => acted += 1,
            Err(refused) => assert!(matches!(refused, RuntimeError::Moved { .. }), "{refused}"),
        }
    }
    assert_eq!(acted, 1);
    assert!(matches!(outcome(&runtime, "k").await, Outcome::Completed { .. }));
    assert_eq!(fixture.world.calls_of("k:ship"), 4);
}

async fn what_is_refused_says_why<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.run(&runtime, "fine").await;
    let fine = operator(&fixture, &runtime, "fine").await;
    let refused = fine.retry("for luck").await.unwrap_err().to_string();
    assert!(refused.contains("the saga `fine` was not changed: the saga is not stuck"), "{refused}");
    stuck_at_ship(&fixture, &runtime, "k").await;
    let stuck = operator(&fixture, &runtime, "k").await;
    let refused = stuck.retry("  ").await.unwrap_err().to_string();
    assert!(refused.contains("give a reason; it is kept with the action"), "{refused}");
    let unknown = runtime.admin().control("unknown").at_revision(1).retry("who").await.unwrap_err();
    assert!(matches!(unknown, RuntimeError::NoSaga(_)), "{unknown}");
    assert!(audit(&fixture, &runtime, "k").await.is_empty());
}

on_both_stores!(
    a_stuck_step_is_tried_again,
    a_rejection_after_a_retry_is_still_unknown,
    a_stuck_undo_is_tried_again,
    a_stuck_step_is_skipped,
    a_skipped_step_is_not_undone,
    a_stuck_undo_is_skipped,
    an_output_is_given_for_a_skipped_step,
    a_stuck_saga_is_ended_as_it_is,
    an_action_names_what_it_saw,
    of_many_operators_one_acts,
    what_is_refused_says_why,
);
