//! Semantic locks: which of them end with an event, and what a saga without its lock still does.

use saga_core::machine::{
    self, Action, Command, Decision, Effect, Event, FailureKind, Phase, Refused, SagaState, Shape, StepPhase,
    StepShape, UndoShape,
};

use crate::shapes::{failure, rejection};

/// A lock, a step that is undone, the pivot with which the lock ends, and a last step.
fn shape() -> Shape {
    let lock = StepShape { lock: true, ..StepShape::new("credit", Effect::Own, UndoShape::NotNeeded) };
    let charge = StepShape::new("charge", Effect::Transactional, UndoShape::NeedsOutput);
    let pivot = StepShape::new("confirm", Effect::Transactional, UndoShape::Missing);
    let pivot = StepShape { releases: vec!["credit"], ..pivot };
    let last = StepShape::new("mail", Effect::Transactional, UndoShape::Missing);
    Shape { steps: vec![lock, charge, pivot, last], pivot: Some(2) }
}

fn apply(shape: &Shape, state: &mut SagaState, event: Event) -> Decision {
    machine::apply(shape, state, event).unwrap()
}

fn rejected(step: usize) -> Event {
    Event::Rejected { step, failure: failure(step, FailureKind::Rejected) }
}

fn paused() -> Event {
    Event::Paused { by: None, reason: "it looks odd".to_owned() }
}

#[test]
fn a_lock_is_kept_until_the_step_that_ends_it_is_done() {
    let shape = shape();
    let (mut state, commands) = machine::start(&shape);
    assert_eq!(commands, [Command::Do { step: 0 }]);
    for (step, released) in [(0, vec![]), (1, vec![]), (2, vec![0]), (3, vec![])] {
        assert_eq!(apply(&shape, &mut state, Event::Done { step }).released, released, "step {step}");
    }
    assert_eq!(state.phase, Phase::Completed);
}

#[test]
fn a_request_that_is_given_up_ends_and_a_lock_that_was_granted_does_not() {
    let shape = shape();
    let (mut state, _) = machine::start(&shape);
    assert_eq!(apply(&shape, &mut state, rejected(0)).released, [0]);
    assert_eq!(state.phase, Phase::Compensated);

    let (mut state, _) = machine::start(&shape);
    apply(&shape, &mut state, Event::Done { step: 0 });
    apply(&shape, &mut state, Event::Done { step: 1 });
    let failed = apply(&shape, &mut state, rejected(2));
    assert_eq!((failed.released, state.phase), (vec![], Phase::Compensating), "it lasts to the last undo");
}

#[test]
fn a_cancel_withdraws_a_request() {
    let shape = shape();
    for has_begun in [false, true] {
        let (mut state, _) = machine::start(&shape);
        let cancel = Event::CancelRequested { reason: rejection("not wanted"), has_begun };
        let mut released = apply(&shape, &mut state, cancel).released;
        if has_begun {
            // The worker that has the row gives it back.
            released.extend(apply(&shape, &mut state, Event::Cancelled { step: 0 }).released);
        }
        assert_eq!((released, state.phase), (vec![0], Phase::Compensated));
    }
}

#[test]
fn only_a_saga_that_does_nothing_loses_its_lock() {
    let shape = shape();
    let (mut state, _) = machine::start(&shape);
    let unlock =
        |state: &mut SagaState| machine::apply(&shape, state, Event::Unlocked { step: 0 }).map(|it| it.released);
    assert_eq!(unlock(&mut state), Err(Refused::NotLocked), "it still waits");
    apply(&shape, &mut state, Event::Done { step: 0 });
    assert_eq!(unlock(&mut state), Err(Refused::NotHalted));
    apply(&shape, &mut state, paused());
    assert_eq!(unlock(&mut state), Err(Refused::UnderWay));
    apply(&shape, &mut state, Event::Parked { work: 7 });
    assert_eq!(unlock(&mut state), Ok(vec![0]));
    assert_eq!(unlock(&mut state), Err(Refused::NotLocked), "it was taken already");
    let stored = SagaState::decode(&state.encode(), 4).unwrap();
    assert_eq!(stored, state);
}

/// The reply timer of a remote step is parked, and its reply comes during the pause. The row says nothing of the step beside it.
#[test]
fn a_parked_row_whose_step_has_ended_does_not_stand_for_another_step() {
    let mut shape = shape();
    shape.steps[2].after = Some(vec![0]);
    let (mut state, _) = machine::start(&shape);
    assert_eq!(apply(&shape, &mut state, Event::Done { step: 0 }).commands.len(), 2, "two steps at once");
    apply(&shape, &mut state, paused());
    apply(&shape, &mut state, Event::Parked { work: 7 });
    apply(&shape, &mut state, Event::Done { step: 1 });
    state.keep_parked(|_| false);
    let unlocked = machine::apply(&shape, &mut state, Event::Unlocked { step: 0 });
    assert_eq!(unlocked, Err(Refused::UnderWay), "step 2 runs");
}

#[test]
fn without_its_lock_a_saga_begins_no_step_and_undoes_what_it_did() {
    let shape = shape();
    let (mut state, _) = machine::start(&shape);
    apply(&shape, &mut state, Event::Done { step: 0 });
    apply(&shape, &mut state, paused());
    apply(&shape, &mut state, Event::Done { step: 1 });
    apply(&shape, &mut state, Event::Unlocked { step: 0 });
    let resumed = apply(&shape, &mut state, Event::Resumed);
    assert_eq!((resumed.commands, resumed.blocked), (vec![], vec![2]), "the next step is stuck");
    let again = apply(&shape, &mut state, Event::Operator(Action::Retry));
    assert_eq!((again.commands, again.blocked), (vec![], vec![2]), "a retry begins nothing");
    let forced = Action::Force { completed: false, reason: "it cannot go on".to_owned() };
    apply(&shape, &mut state, Event::Operator(forced));
    assert_eq!(state.phase, Phase::Compensated);
}

#[test]
fn a_claimed_step_of_a_saga_without_its_lock_is_not_run() {
    let shape = shape();
    let (mut state, _) = machine::start(&shape);
    apply(&shape, &mut state, Event::Done { step: 0 });
    let row = machine::ClaimedRow::first(Command::Do { step: 1 }, Effect::Transactional, UndoShape::NeedsOutput);
    assert_eq!(row.without_lock(&shape, &state), None);
    apply(&shape, &mut state, paused());
    apply(&shape, &mut state, Event::Parked { work: 7 });
    apply(&shape, &mut state, Event::Unlocked { step: 0 });
    assert!(matches!(row.without_lock(&shape, &state), Some(Event::Blocked { step: 1, .. })));
    assert_eq!(state.steps[1].phase, StepPhase::Started);
    let undo = Command::Undo { step: 1, round: 1, known: true };
    let undo = machine::ClaimedRow::first(undo, Effect::Transactional, UndoShape::NeedsOutput);
    assert_eq!(undo.without_lock(&shape, &state), None, "an undo runs");
}
