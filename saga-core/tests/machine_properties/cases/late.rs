//! Late answers, second undos, and what an operator decides about steps that may have happened.

use saga_core::machine::{self, Action, Command, Event, FailureKind, SagaState, StepPhase, UndoShape};
use saga_core::store::{RecordedOutcome, Status};

use super::events::{apply, blocked, calls, force, unknown};
use crate::shapes::failure;

/// The retried command must still be one that may have happened, or its rejection would be taken for an answer.
#[test]
fn what_may_have_happened_remains_so_when_an_operator_retries() {
    for (shape, event) in [
        (calls(2, UndoShape::NeedsOutput, None), unknown(0)),
        (calls(2, UndoShape::TakesUnknown, Some(0)), unknown(0)),
        (calls(2, UndoShape::TakesUnknown, None), blocked(0, true)),
    ] {
        let (mut state, _) = machine::start(&shape);
        assert!(apply(&shape, &mut state, event).became_stuck);
        assert_eq!(apply(&shape, &mut state, Event::Operator(Action::Retry)).commands, [Command::Do { step: 0 }]);
        assert!(state.steps[0].in_doubt);
        apply(&shape, &mut state, Event::Done { step: 0 });
        assert!(!state.steps[0].in_doubt, "a success is an answer");
    }
}

#[test]
fn a_success_decides_a_step_that_a_person_was_to_decide() {
    let shape = calls(2, UndoShape::TakesUnknown, None);
    for success in [Event::Done { step: 0 }, Event::LateSuccess { step: 0 }] {
        let (mut state, _) = machine::start(&shape);
        apply(&shape, &mut state, blocked(0, true));
        assert_eq!(apply(&shape, &mut state, success).commands, [Command::Do { step: 1 }]);
        assert_eq!(state.status(), Status::Running);
    }
}

/// The row of the older owner is gone, and the operator's retry is another row: the fact counts all the same (G3).
#[test]
fn g3_a_late_success_counts_while_the_step_is_retried() {
    let shape = calls(2, UndoShape::TakesUnknown, None);
    let (mut state, _) = machine::start(&shape);
    apply(&shape, &mut state, blocked(0, true));
    apply(&shape, &mut state, Event::Operator(Action::Retry));
    assert_eq!(apply(&shape, &mut state, Event::LateSuccess { step: 0 }).commands, [Command::Do { step: 1 }]);
}

/// A late success after an operator had ended the saga as compensated is undone, and what the operator took care of is
/// left alone (G3).
#[test]
fn g3_a_late_success_after_a_forced_end_is_undone_alone() {
    let shape = calls(2, UndoShape::TakesUnknown, None);
    let (mut state, _) = machine::start(&shape);
    apply(&shape, &mut state, Event::Done { step: 0 });
    apply(&shape, &mut state, blocked(1, true));
    apply(&shape, &mut state, force(false));
    assert_eq!(state.status(), Status::Compensated);
    let undo = Command::Undo { step: 1, round: 1, known: true };
    assert_eq!(apply(&shape, &mut state, Event::LateSuccess { step: 1 }).commands, [undo]);
    assert_eq!(apply(&shape, &mut state, Event::Undone { step: 1, informed: true }).commands, []);
    assert_eq!(state.status(), Status::Compensated);
    assert_eq!(state.steps[0].phase, StepPhase::UndoSkipped);
}

/// A success is reported while its step is undone. An undo that was given the output undid it; one that may have been
/// called without it undid nothing, and another one follows under a key of its own (G3).
#[test]
fn g3_a_second_undo_follows_only_one_that_did_not_know() {
    let shape = calls(1, UndoShape::TakesUnknown, None);
    let undo = |round, known| [Command::Undo { step: 0, round, known }];
    let undoing = || {
        let (mut state, _) = machine::start(&shape);
        assert_eq!(apply(&shape, &mut state, unknown(0)).commands, undo(1, false));
        state
    };
    let undone = |informed| Event::Undone { step: 0, informed };
    let check = |mut state: SagaState, informed, expected: &[Command]| {
        assert_eq!(apply(&shape, &mut state, undone(informed)).commands, expected);
        assert_eq!(state.status().is_ended(), expected.is_empty());
    };

    let mut reported = undoing();
    apply(&shape, &mut reported, Event::LateSuccess { step: 0 });
    check(reported.clone(), true, &[]);
    check(reported.clone(), false, &undo(2, true));

    // It failed before a person had it tried again, and whoever it failed at may have taken note of its key.
    apply(&shape, &mut reported, Event::UndoBlocked { step: 0, reason: "no".to_owned() });
    assert_eq!(apply(&shape, &mut reported, Event::Operator(Action::Retry)).commands, undo(1, true));
    check(reported, true, &undo(2, true));

    let mut retried = undoing();
    apply(&shape, &mut retried, Event::UndoBlocked { step: 0, reason: "no".to_owned() });
    apply(&shape, &mut retried, Event::Operator(Action::Retry));
    apply(&shape, &mut retried, Event::LateSuccess { step: 0 });
    check(retried, true, &undo(2, true));
}

/// A call of an older owner ended without an answer after its step was decided without it. The step may have happened: it is
/// undone without its output, and where an undo came before the end of that call, once more (G5).
#[test]
fn g5_a_call_that_ended_unanswered_behind_the_decision_is_undone() {
    let undo = |round| [Command::Undo { step: 1, round, known: false }];
    let late = Event::LateUnknown { step: 1 };
    let decided = |event: Event| {
        let shape = calls(2, UndoShape::TakesUnknown, None);
        let (mut state, _) = machine::start(&shape);
        apply(&shape, &mut state, Event::Done { step: 0 });
        apply(&shape, &mut state, event);
        if state.steps[1].phase != StepPhase::Undoing {
            apply(&shape, &mut state, Event::Undone { step: 0, informed: true });
            assert_eq!(state.status(), Status::Compensated);
        }
        (shape, state)
    };
    for event in [
        Event::Rejected { step: 1, failure: failure(1, FailureKind::Rejected) },
        Event::Failed { step: 1, failure: failure(1, FailureKind::Failed) },
    ] {
        let (shape, mut state) = decided(event);
        let decision = apply(&shape, &mut state, late.clone());
        assert_eq!(decision.commands, undo(1));
        assert_eq!(decision.revision.map(|revision| revision.outcome), Some(RecordedOutcome::Unknown));
        assert_eq!(apply(&shape, &mut state, Event::Undone { step: 1, informed: false }).commands, []);
        assert_eq!(state.status(), Status::Compensated);
        // A second call that ended so is undone as well.
        assert_eq!(apply(&shape, &mut state, late.clone()).commands, undo(2));
    }

    let (shape, mut state) = decided(unknown(1));
    apply(&shape, &mut state, late.clone());
    assert_eq!(apply(&shape, &mut state, Event::Undone { step: 1, informed: false }).commands, undo(2));
    // A success that is reported meanwhile is undone with its output.
    apply(&shape, &mut state, late);
    apply(&shape, &mut state, Event::LateSuccess { step: 1 });
    let known = [Command::Undo { step: 1, round: 3, known: true }];
    assert_eq!(apply(&shape, &mut state, Event::Undone { step: 1, informed: false }).commands, known);
}

/// What has an answer needs no second undo, and what only a person can undo needs that person (G5).
#[test]
fn g5_an_unanswered_call_reopens_only_what_it_may_have_changed() {
    let late = Event::LateUnknown { step: 0 };
    let shape = calls(2, UndoShape::TakesUnknown, None);
    let (mut state, _) = machine::start(&shape);
    for event in [
        Event::Done { step: 0 },
        Event::Rejected { step: 1, failure: failure(1, FailureKind::Rejected) },
        Event::Undone { step: 0, informed: true },
    ] {
        let before = state.clone();
        assert_eq!(apply(&shape, &mut state, late.clone()).commands, []);
        assert_eq!(state, before);
        apply(&shape, &mut state, event);
    }
    let before = state.clone();
    assert_eq!(apply(&shape, &mut state, late.clone()).commands, []);
    assert_eq!(state, before, "its undo was given what it returned");

    let shape = calls(1, UndoShape::NeedsOutput, None);
    let (mut state, _) = machine::start(&shape);
    apply(&shape, &mut state, Event::Rejected { step: 0, failure: failure(0, FailureKind::Rejected) });
    assert_eq!(state.status(), Status::Compensated);
    assert!(apply(&shape, &mut state, late).became_stuck);
}

/// A step that is reopened by an unanswered call waits for its turn as every other: one undo of a sequence runs at a time (G5).
#[test]
fn g5_a_reopened_step_is_undone_after_what_is_being_undone() {
    for undo in [UndoShape::NeedsOutput, UndoShape::TakesUnknown] {
        let shape = calls(2, undo, None);
        let (mut state, _) = machine::start(&shape);
        apply(&shape, &mut state, Event::Done { step: 0 });
        apply(&shape, &mut state, Event::Rejected { step: 1, failure: failure(1, FailureKind::Rejected) });
        let decision = apply(&shape, &mut state, Event::LateUnknown { step: 1 });
        assert!(!decision.became_stuck && decision.commands.is_empty(), "step 0 is being undone: {decision:?}");
        crate::ledger::check_state(&shape, &state);
        let decision = apply(&shape, &mut state, Event::Undone { step: 0, informed: true });
        let is_stuck = undo == UndoShape::NeedsOutput;
        assert_eq!(decision.became_stuck, is_stuck);
        let undo = [Command::Undo { step: 1, round: 1, known: false }];
        assert_eq!(decision.commands, if is_stuck { &[] } else { &undo[..] });
        crate::ledger::check_state(&shape, &state);
    }
}

/// Whoever goes past an undo is told that its step may still take effect, as long as nobody reported that it did (G5).
#[test]
fn who_decides_about_an_undo_is_told_what_is_not_known() {
    let shape = calls(1, UndoShape::TakesUnknown, None);
    let reason = |is_reported: bool| {
        let (mut state, _) = machine::start(&shape);
        apply(&shape, &mut state, unknown(0));
        if is_reported {
            apply(&shape, &mut state, Event::LateSuccess { step: 0 });
        }
        assert!(apply(&shape, &mut state, Event::UndoBlocked { step: 0, reason: "no".to_owned() }).became_stuck);
        state.stuck.expect("it is stuck").reason
    };
    assert_eq!(reason(false), "no; the step itself may have happened or not, and may still");
    assert_eq!(reason(true), "no");
}

/// A skipped step succeeded after all, and the step behind it was stuck when the saga was ended: nothing is waited for.
#[test]
fn nothing_is_under_way_in_a_saga_that_was_ended_by_force() {
    let shape = calls(2, UndoShape::TakesUnknown, None);
    let (mut state, _) = machine::start(&shape);
    apply(&shape, &mut state, blocked(0, false));
    apply(&shape, &mut state, Event::Operator(Action::Skip));
    apply(&shape, &mut state, blocked(1, false));
    apply(&shape, &mut state, force(false));
    let undo = Command::Undo { step: 0, round: 1, known: true };
    assert_eq!(apply(&shape, &mut state, Event::LateSuccess { step: 0 }).commands, [undo]);
}

#[test]
fn behind_the_pivot_a_failure_needs_a_person() {
    let shape = calls(2, UndoShape::TakesUnknown, Some(0));
    for kind in [FailureKind::Rejected, FailureKind::Failed] {
        let (mut state, _) = machine::start(&shape);
        apply(&shape, &mut state, Event::Done { step: 0 });
        let event = match kind {
            FailureKind::Rejected => Event::Rejected { step: 1, failure: failure(1, kind) },
            _ => Event::Failed { step: 1, failure: failure(1, kind) },
        };
        assert!(apply(&shape, &mut state, event).became_stuck, "{kind:?}");
    }
}

/// What another service asked for and takes back is undone if it took effect, and is barred if it did not begin. What is
/// in flight ends first (G5).
#[test]
fn g5_what_is_taken_back_is_undone_or_barred() {
    let shape = calls(1, UndoShape::TakesUnknown, None);
    let undo = [Command::Undo { step: 0, round: 1, known: true }];
    let begin = || machine::start(&shape).0;

    let mut done = begin();
    apply(&shape, &mut done, Event::Done { step: 0 });
    assert_eq!(done.status(), Status::Completed);
    assert_eq!(apply(&shape, &mut done, Event::UndoRequested).commands, undo);
    assert_eq!(apply(&shape, &mut done, Event::UndoRequested).commands, []);
    apply(&shape, &mut done, Event::Undone { step: 0, informed: true });
    assert_eq!(done.status(), Status::Compensated);
    assert_eq!(apply(&shape, &mut done, Event::UndoRequested).commands, []);

    let mut under_way = begin();
    assert_eq!(apply(&shape, &mut under_way, Event::UndoRequested).commands, []);
    assert_eq!(under_way.status(), Status::Running);
    apply(&shape, &mut under_way, Event::Done { step: 0 });
    assert_eq!(apply(&shape, &mut under_way, Event::UndoRequested).commands, undo);

    let mut not_begun = SagaState::new(1);
    assert_eq!(apply(&shape, &mut not_begun, Event::UndoRequested).commands, []);
    assert_eq!((not_begun.status(), not_begun.steps[0].phase), (Status::Compensated, StepPhase::Ready));
}
