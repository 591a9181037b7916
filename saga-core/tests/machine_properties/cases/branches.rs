//! Parallel branches of which one fails or gets stuck.

use saga_core::machine::{
    self, Action, ClaimedRow, Command, Effect, Event, FailureKind, SagaState, Shape, StepShape, UndoShape,
};
use saga_core::store::Status;

use super::events::{apply, blocked, calls, force};
use crate::shapes::{failure, rejection};

/// A step, a group of two branches, one of them of two steps, and a step behind the group: `a`, `b | c d`, `e`.
fn group(undo: UndoShape) -> Shape {
    let after = [None, None, Some(vec![0]), None, Some(vec![1, 3])];
    let step = |(index, after): (usize, Option<Vec<usize>>)| StepShape {
        after,
        ..StepShape::new(["a", "b", "c", "d", "e"][index], Effect::External, undo)
    };
    Shape { steps: after.into_iter().enumerate().map(step).collect(), pivot: None }
}

fn rejected(step: usize) -> Event {
    Event::Rejected { step, failure: failure(step, FailureKind::Rejected) }
}

fn done(shape: &Shape, state: &mut SagaState, step: usize) -> Vec<Command> {
    apply(shape, state, Event::Done { step }).commands
}

#[test]
fn branches_begin_together_and_what_stands_behind_waits_for_all() {
    let shape = group(UndoShape::TakesUnknown);
    let (mut state, commands) = machine::start(&shape);
    assert_eq!(commands, [Command::Do { step: 0 }]);
    assert_eq!(done(&shape, &mut state, 0), [Command::Do { step: 1 }, Command::Do { step: 2 }]);
    assert_eq!(done(&shape, &mut state, 1), []);
    assert_eq!(done(&shape, &mut state, 2), [Command::Do { step: 3 }]);
    assert_eq!(done(&shape, &mut state, 3), [Command::Do { step: 4 }]);
    assert_eq!(done(&shape, &mut state, 4), []);
    assert_eq!(state.status(), Status::Completed);
}

/// A sibling that has not begun is cancelled, one that took effect is undone, and the branches are undone side by side.
#[test]
fn a_failed_branch_cancels_and_undoes_its_siblings() {
    let shape = group(UndoShape::TakesUnknown);
    let undo = |step| Command::Undo { step, round: 1, known: true };
    let (mut state, _) = machine::start(&shape);
    done(&shape, &mut state, 0);
    done(&shape, &mut state, 2);
    assert_eq!(apply(&shape, &mut state, rejected(3)).commands, [], "a step is in flight, and nothing is undone");
    assert_eq!(apply(&shape, &mut state, Event::Cancelled { step: 1 }).commands, [undo(2)]);
    assert_eq!(apply(&shape, &mut state, Event::Undone { step: 2, informed: true }).commands, [undo(0)]);

    let (mut state, _) = machine::start(&shape);
    for step in [0, 2, 1, 3] {
        done(&shape, &mut state, step);
    }
    assert_eq!(apply(&shape, &mut state, rejected(4)).commands, [undo(1), undo(3)]);
    assert_eq!(apply(&shape, &mut state, Event::Undone { step: 3, informed: true }).commands, [undo(2)]);
    assert_eq!(apply(&shape, &mut state, Event::Undone { step: 1, informed: true }).commands, []);
    assert_eq!(apply(&shape, &mut state, Event::Undone { step: 2, informed: true }).commands, [undo(0)]);
}

/// What a host could not handle lies there as a dead letter, which may be replayed at any time: that it certainly did not
/// run is true only until then. So the host is asked again on the way back, and its answer decides (G5).
#[test]
fn g5_what_a_host_could_not_handle_is_asked_for_again_on_the_way_back() {
    let mut shape = group(UndoShape::TakesUnknown);
    shape.steps[1].effect = Effect::Remote { service: "elsewhere" };
    let undo = |step, known| Command::Undo { step, round: 1, known };
    let (mut state, _) = machine::start(&shape);
    done(&shape, &mut state, 0);
    assert!(apply(&shape, &mut state, blocked(1, false)).became_stuck);
    assert_eq!(apply(&shape, &mut state, rejected(2)).commands, []);
    let retried = apply(&shape, &mut state, Event::Operator(Action::Retry));
    assert_eq!((retried.commands, retried.record), (vec![Command::Do { step: 1 }], None));
    assert_eq!(done(&shape, &mut state, 1), [undo(1, true)]);
    assert_eq!(apply(&shape, &mut state, Event::Undone { step: 1, informed: true }).commands, [undo(0, true)]);
}

/// The order in which the steps were done says nothing here: it is not the same in the next saga.
#[test]
fn undos_that_get_stuck_together_are_shown_in_the_order_of_the_definition() {
    let shape = group(UndoShape::Missing);
    let (mut state, _) = machine::start(&shape);
    for step in [0, 2, 3, 1] {
        done(&shape, &mut state, step);
    }
    assert!(apply(&shape, &mut state, rejected(4)).became_stuck);
    let stuck: Vec<usize> = state.stuck.iter().chain(&state.also_stuck).map(|stuck| stuck.step).collect();
    assert_eq!(stuck, [1, 3]);
}

/// Behind the pivot only an operator ends a saga as compensated. Where a later success makes it go back once more, a step that
/// certainly did not happen needs no operator (G5).
#[test]
fn g5_behind_the_pivot_a_step_that_did_not_happen_holds_up_no_undo() {
    let shape = Shape { pivot: Some(0), ..group(UndoShape::TakesUnknown) };
    let (mut state, _) = machine::start(&shape);
    done(&shape, &mut state, 0);
    assert!(apply(&shape, &mut state, blocked(1, true)).became_stuck);
    apply(&shape, &mut state, force(false));
    assert_eq!(apply(&shape, &mut state, Event::LateSuccess { step: 1 }).commands, [], "a step is in flight");
    assert_eq!(state.status(), Status::Compensating);
    let decided = apply(&shape, &mut state, blocked(2, false));
    assert_eq!(decided.commands, [Command::Undo { step: 1, round: 1, known: true }]);
    assert!(!decided.became_stuck);
}

/// Both branches need a person; neither is lost, whatever is done about the other.
#[test]
fn what_gets_stuck_beside_another_has_its_turn() {
    let shape = group(UndoShape::TakesUnknown);
    let stuck_at = |state: &SagaState| state.stuck.as_ref().map(|stuck| stuck.step);
    for action in [Action::Retry, Action::Skip] {
        let (mut state, _) = machine::start(&shape);
        done(&shape, &mut state, 0);
        assert!(apply(&shape, &mut state, blocked(2, false)).became_stuck);
        assert!(!apply(&shape, &mut state, blocked(1, true)).became_stuck);
        assert_eq!(stuck_at(&state), Some(2));
        let acted = apply(&shape, &mut state, Event::Operator(action.clone()));
        assert!(acted.became_stuck);
        assert_eq!(stuck_at(&state), Some(1));
        // What a skipped step makes room for waits until the person is done with the other.
        let acted = apply(&shape, &mut state, Event::Operator(Action::Retry)).commands;
        let next = if action == Action::Skip { vec![1, 3] } else { vec![1] };
        assert_eq!(acted, next.into_iter().map(|step| Command::Do { step }).collect::<Vec<_>>());
        assert_eq!(state.status(), Status::Running);
    }
    let (mut state, _) = machine::start(&shape);
    done(&shape, &mut state, 0);
    apply(&shape, &mut state, blocked(2, false));
    apply(&shape, &mut state, blocked(1, true));
    let forced = apply(&shape, &mut state, force(false));
    assert_eq!(forced.record.into_iter().chain(forced.further).count(), 2);
    assert_eq!(state.status(), Status::Compensated);
}

/// A cancel may come while another service has a step in hand. An undo bars it there; where none is sent, its answer is
/// waited for, or it would take effect in a saga that is over.
#[test]
fn g5_what_another_service_was_asked_for_is_barred_or_awaited() {
    for (undo, is_awaited) in [(UndoShape::TakesUnknown, false), (UndoShape::NotNeeded, true)] {
        let mut shape = calls(2, undo, None);
        shape.steps[1].effect = Effect::Remote { service: "elsewhere" };
        let (mut state, _) = machine::start(&shape);
        apply(&shape, &mut state, Event::Done { step: 0 });
        let row = ClaimedRow {
            command: Command::Do { step: 1 },
            effect: shape.steps[1].effect,
            undo,
            in_doubt: true,
            recovered: false,
            is_late: false,
            has_resolution: false,
        };
        assert_eq!(row.unwanted(&state), None);
        apply(&shape, &mut state, Event::CancelRequested { reason: rejection("not wanted"), has_begun: true });
        let unwanted = row.unwanted(&state);
        assert_eq!(matches!(unwanted, Some(Event::Unknown { step: 1, .. })), !is_awaited, "{unwanted:?}");
        assert_eq!(unwanted.is_none(), is_awaited);
        apply(&shape, &mut state, Event::Done { step: 1 });
        assert!(row.unwanted(&state).is_some(), "it is decided");
    }
}

/// An operator ended the saga as compensated, and a step behind the pivot took effect after that. A sibling that is rejected
/// then took no effect: no operator is asked about it, and what took effect is undone (G5).
#[test]
fn g5_a_rejection_behind_the_pivot_needs_no_operator_on_the_way_back() {
    let branch =
        |name| StepShape { after: Some(vec![0]), ..StepShape::new(name, Effect::External, UndoShape::NeedsOutput) };
    let pivot = StepShape::new("a", Effect::External, UndoShape::NeedsOutput);
    let shape = Shape { steps: vec![pivot, branch("b"), branch("c"), branch("d")], pivot: Some(0) };
    let (mut state, _) = machine::start(&shape);
    done(&shape, &mut state, 0);
    assert!(apply(&shape, &mut state, rejected(1)).became_stuck);
    apply(&shape, &mut state, force(false));
    assert_eq!(done(&shape, &mut state, 2), [], "a step is in flight, and nothing is undone");
    let decision = apply(&shape, &mut state, rejected(3));
    assert_eq!(decision.commands, [Command::Undo { step: 2, round: 1, known: true }]);
    assert!(!decision.became_stuck);
    apply(&shape, &mut state, Event::Undone { step: 2, informed: true });
    assert_eq!(state.status(), Status::Compensated);
}
