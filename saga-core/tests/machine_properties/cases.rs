//! Single orders of events that were once decided wrongly.

use saga_core::machine::{
    self, Action, ClaimedRow, Command, Decision, Effect, Event, FailureKind, Refused, SagaState, Shape, StepPhase,
    StepShape, UndoShape,
};
use saga_core::store::{RecordedOutcome, Status};

use crate::shapes::{failure, rejection};

fn calls(steps: usize, undo: UndoShape, pivot: Option<usize>) -> Shape {
    let step = |index| StepShape::new(["a", "b", "c"][index], Effect::External, undo);
    Shape { steps: (0..steps).map(step).collect(), pivot }
}

fn apply(shape: &Shape, state: &mut SagaState, event: Event) -> Decision {
    machine::apply(shape, state, event).expect("the event is accepted")
}

fn blocked(step: usize, maybe: bool) -> Event {
    Event::Blocked { step, reason: "no".to_owned(), in_doubt: maybe }
}

fn unknown(step: usize) -> Event {
    Event::Unknown { step, failure: failure(step, FailureKind::Unknown) }
}

fn force(completed: bool) -> Event {
    Event::Operator(Action::Force { completed, reason: "by hand".to_owned() })
}

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
