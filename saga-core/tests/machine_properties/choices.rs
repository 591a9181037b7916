//! Single orders of events around choices.

use saga_core::machine::{
    self, Action, ArmOf, Command, Decision, Effect, Event, Phase, SagaState, Shape, StepPhase, StepShape, UndoShape,
};
use saga_core::store::{RecordedOutcome, Status};

use crate::shapes::failure;

/// A step, a choice of two arms with a step each, and a step behind it.
fn shape() -> Shape {
    let call = |name| StepShape::new(name, Effect::External, UndoShape::TakesUnknown);
    let arm = |name, arm| StepShape { within: Some(ArmOf { choice: 1, arm }), after: Some(vec![1]), ..call(name) };
    let choice = StepShape { arms: vec!["x", "y"], ..StepShape::new("b", Effect::Own, UndoShape::NotNeeded) };
    let behind = StepShape { after: Some(vec![1, 2, 3]), ..call("e") };
    Shape { steps: vec![call("a"), choice, arm("c", 0), arm("d", 1), behind], pivot: None }
}

fn apply(shape: &Shape, state: &mut SagaState, event: Event) -> Decision {
    machine::apply(shape, state, event).expect("the event is accepted")
}

/// The saga has come to the choice.
fn before_choice(shape: &Shape) -> SagaState {
    let mut state = machine::start(shape).0;
    assert_eq!(apply(shape, &mut state, Event::Done { step: 0 }).commands, [Command::Do { step: 1 }]);
    state
}

fn phases(state: &SagaState) -> Vec<StepPhase> {
    state.steps.iter().map(|step| step.phase).collect()
}

#[test]
fn of_the_arms_one_runs_and_the_others_never_do() {
    use StepPhase::{Done, NotTaken, Ready, Started};
    let shape = shape();
    for (arm, begun, then) in [
        (Some(0), 2, [Done, Done, Started, NotTaken, Ready]),
        (Some(1), 3, [Done, Done, NotTaken, Started, Ready]),
        (None, 4, [Done, Done, NotTaken, NotTaken, Started]),
    ] {
        let mut state = before_choice(&shape);
        let decision = apply(&shape, &mut state, Event::Chosen { step: 1, arm });
        assert_eq!(decision.commands, [Command::Do { step: begun }], "{arm:?}");
        assert_eq!(decision.record.map(|record| (record.step, record.outcome)), Some((1, RecordedOutcome::Done)));
        assert_eq!(phases(&state), then, "{arm:?}");
        let before = state.clone();
        for late in [
            Event::Chosen { step: 1, arm: Some(0) },
            Event::LateSuccess { step: 1 },
            Event::Done { step: 3 - begun / 3 },
        ] {
            assert_eq!(apply(&shape, &mut state, late), Decision::default());
        }
        assert_eq!(state, before, "it is chosen once, and what is passed by cannot be done");
        while let Some(step) = state.steps.iter().position(|step| step.phase == Started) {
            apply(&shape, &mut state, Event::Done { step });
        }
        assert_eq!(state.status(), Status::Completed);
    }
}

/// G5: what is passed by has nothing to undo, and the way back leads through the arm that ran.
#[test]
fn g5_the_way_back_leads_through_the_arm_that_ran() {
    let shape = shape();
    let mut state = before_choice(&shape);
    apply(&shape, &mut state, Event::Chosen { step: 1, arm: Some(1) });
    apply(&shape, &mut state, Event::Done { step: 3 });
    let rejected = Event::Rejected { step: 4, failure: failure(4, machine::FailureKind::Rejected) };
    let undo = |step| [Command::Undo { step, round: 1, known: true }];
    assert_eq!(apply(&shape, &mut state, rejected).commands, undo(3));
    assert_eq!(apply(&shape, &mut state, Event::Undone { step: 3, informed: true }).commands, undo(0));
    apply(&shape, &mut state, Event::Undone { step: 0, informed: true });
    assert_eq!(state.status(), Status::Compensated);
    assert_eq!(state.steps[2].phase, StepPhase::NotTaken);
}

/// A choice that cannot be made waits for a person, who has it made again, or makes it.
#[test]
fn a_person_makes_a_choice_that_cannot_be_made() {
    let shape = shape();
    let mut stuck = before_choice(&shape);
    apply(&shape, &mut stuck, Event::Blocked { step: 1, reason: "it panicked".to_owned(), in_doubt: false });
    assert_eq!(stuck.status(), Status::Stuck);
    for (action, begun) in
        [(Action::Retry, 1), (Action::Choose { arm: Some(0) }, 2), (Action::Choose { arm: None }, 4), (Action::Skip, 4)]
    {
        let mut state = stuck.clone();
        let commands = apply(&shape, &mut state, Event::Operator(action.clone())).commands;
        assert_eq!(commands, [Command::Do { step: begun }], "{action:?}");
        assert_eq!(state.status(), Status::Running);
    }
}

/// A saga that turned round while a choice was to be made begins no arm.
#[test]
fn g5_a_choice_that_comes_too_late_begins_nothing() {
    let shape = shape();
    let mut state = before_choice(&shape);
    let called_off = Event::CancelRequested { reason: crate::shapes::rejection("no longer wanted"), has_begun: true };
    apply(&shape, &mut state, called_off);
    let decision = apply(&shape, &mut state, Event::Chosen { step: 1, arm: Some(0) });
    assert_eq!(decision.commands, [Command::Undo { step: 0, round: 1, known: true }]);
    assert_eq!(decision.record.map(|record| record.outcome), Some(RecordedOutcome::Cancelled));
    assert_eq!((state.phase, state.steps[2].phase), (Phase::Compensating, StepPhase::Ready));
}
