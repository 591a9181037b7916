//! Sagas that are cancelled.

use saga_core::machine::{
    self, Action, Command, Decision, Effect, Event, FailureKind, Refused, Shape, StepPhase, StepShape, UndoShape,
};
use saga_core::store::Status;

use super::events::{apply, blocked, calls};
use crate::shapes::rejection;

fn called_off() -> Event {
    Event::CancelRequested { reason: rejection("no longer wanted"), has_begun: true }
}

/// What is called off turns round before its pivot: what is in flight comes to its end first, and then all is undone (G5).
#[test]
fn g5_what_is_called_off_is_undone_and_nothing_new_begins() {
    let shape = calls(2, UndoShape::TakesUnknown, None);
    let mut state = machine::start(&shape).0;
    apply(&shape, &mut state, Event::Done { step: 0 });
    assert_eq!(apply(&shape, &mut state, called_off()), Decision::default(), "one step is in flight");
    let failure = state.failure.clone().expect("a reason");
    assert_eq!((failure.step, failure.kind), (1, FailureKind::Cancelled));
    assert_eq!(failure.reason.message(), "no longer wanted");
    assert_eq!(machine::apply(&shape, &mut state, called_off()), Err(Refused::Compensating));
    let mut given_back = state.clone();

    let undo = |step| [Command::Undo { step, round: 1, known: true }];
    assert_eq!(apply(&shape, &mut state, Event::Done { step: 1 }).commands, undo(1));
    assert_eq!(apply(&shape, &mut state, Event::Undone { step: 1, informed: true }).commands, undo(0));
    apply(&shape, &mut state, Event::Undone { step: 0, informed: true });
    assert_eq!(state.status(), Status::Compensated);
    assert_eq!(machine::apply(&shape, &mut state, called_off()), Err(Refused::Ended));

    assert_eq!(apply(&shape, &mut given_back, Event::Cancelled { step: 1 }).commands, undo(0));
    assert_eq!(given_back.steps[1].phase, StepPhase::Cancelled);
}

/// Nothing is known of a sub-saga whose step is stuck: when an operator retries that, it is looked at again, also while the saga
/// compensates. It may still run, and what it does is to be undone (G5).
#[test]
fn g5_a_sub_saga_that_may_still_run_is_not_forgotten_when_its_step_is_retried() {
    let sub =
        StepShape { child: Some("ship".to_owned()), ..StepShape::new("ship", Effect::Own, UndoShape::TakesUnknown) };
    let shape = Shape { steps: vec![sub], pivot: None };
    let mut state = machine::start(&shape).0;
    apply(&shape, &mut state, called_off());
    apply(&shape, &mut state, blocked(0, false));
    let retried = apply(&shape, &mut state, Event::Operator(Action::Retry));
    assert_eq!(retried.commands, [Command::Do { step: 0 }]);
    assert_eq!(state.status(), Status::Compensating);
    let undo = apply(&shape, &mut state, Event::Done { step: 0 });
    assert_eq!(undo.commands, [Command::Undo { step: 0, round: 1, known: true }]);
}

#[test]
fn g5_behind_its_pivot_nothing_is_called_off() {
    let shape = calls(3, UndoShape::TakesUnknown, Some(1));
    let mut state = machine::start(&shape).0;
    let before_pivot = state.clone();
    for _ in 0..2 {
        let step = state.steps.iter().position(|step| step.phase == StepPhase::Started).expect("one is under way");
        apply(&shape, &mut state, Event::Done { step });
        let refused = machine::apply(&shape, &mut state.clone(), called_off()).expect_err("it only goes forward");
        assert!(matches!(refused, Refused::PastPivot { .. }), "{refused}");
    }
    let mut state = before_pivot;
    apply(&shape, &mut state, called_off());
    assert_eq!(state.status(), Status::Compensating);
}

/// What nobody ever had is taken back: the saga is over, also where it would have begun with its pivot (G5).
#[test]
fn g5_what_never_began_is_called_off_at_once() {
    let unbegun = || Event::CancelRequested { reason: rejection("no longer wanted"), has_begun: false };
    for pivot in [None, Some(0)] {
        let shape = calls(2, UndoShape::TakesUnknown, pivot);
        let mut state = machine::start(&shape).0;
        let mut begun = state.clone();
        assert_eq!(apply(&shape, &mut state, unbegun()), Decision::default());
        assert_eq!(state.status(), Status::Compensated);
        assert!(state.steps.iter().all(|step| step.phase == StepPhase::Ready), "{state:?}");
        apply(&shape, &mut begun, Event::Done { step: 0 });
        let called_off = machine::apply(&shape, &mut begun, unbegun());
        assert_eq!(called_off.is_ok(), pivot.is_none(), "it is not believed of one that has moved");
        assert_ne!(begun.status(), Status::Compensated);
    }
}

/// A command that was a dead letter in another service, and that an operator retried, lies there: it may be done at any time,
/// although the row of the retry is untouched (G5). Found by the simulation, seed 10607.
#[test]
fn g5_a_saga_whose_command_was_sent_to_another_service_has_begun() {
    let remote = StepShape::new("a", Effect::Remote { service: "payments" }, UndoShape::TakesUnknown);
    let shape = Shape { steps: vec![remote], pivot: None };
    let mut state = machine::start(&shape).0;
    state.steps[0].sent = Some(machine::Sent { message: 1, work: 1, given: 0 });
    apply(&shape, &mut state, blocked(0, false));
    apply(&shape, &mut state, Event::Operator(Action::Retry));
    apply(&shape, &mut state, Event::CancelRequested { reason: rejection("no longer wanted"), has_begun: false });
    assert_eq!((state.status(), state.steps[0].phase), (Status::Compensating, StepPhase::Started));
    let undo = [Command::Undo { step: 0, round: 1, known: true }];
    assert_eq!(apply(&shape, &mut state, Event::Done { step: 0 }).commands, undo);
}

/// A stuck saga that is called off turns round and stays stuck: a person decides about what is stuck.
#[test]
fn a_stuck_saga_that_is_called_off_waits_for_its_person() {
    let shape = calls(2, UndoShape::TakesUnknown, None);
    let mut state = machine::start(&shape).0;
    apply(&shape, &mut state, Event::Done { step: 0 });
    apply(&shape, &mut state, Event::Blocked { step: 1, reason: "no".to_owned(), in_doubt: false });
    apply(&shape, &mut state, called_off());
    assert_eq!((state.status(), state.phase), (Status::Stuck, machine::Phase::Compensating));
    for action in [Action::Retry, Action::Skip] {
        let acted = apply(&shape, &mut state.clone(), Event::Operator(action)).commands;
        assert_eq!(acted, [Command::Undo { step: 0, round: 1, known: true }]);
    }
}
