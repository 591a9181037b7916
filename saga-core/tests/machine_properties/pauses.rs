//! What is promised of a saga that is paused, one by one.

use saga_core::machine::{
    self, Action, Command, Decision, Effect, Event, FailureKind, Refused, SagaState, Shape, StepPhase, StepShape,
    UndoShape,
};
use saga_core::store::Status;

use crate::shapes::{failure, rejection};

fn calls(after: &[Option<Vec<usize>>]) -> Shape {
    let step = |(index, after): (usize, &Option<Vec<usize>>)| StepShape {
        after: after.clone(),
        ..StepShape::new(["a", "b", "c"][index], Effect::External, UndoShape::TakesUnknown)
    };
    Shape { steps: after.iter().enumerate().map(step).collect(), pivot: None }
}

fn apply(shape: &Shape, state: &mut SagaState, event: Event) -> Decision {
    machine::apply(shape, state, event).expect("the event is accepted")
}

fn pause() -> Event {
    Event::Paused { by: Some("ann".to_owned()), reason: "wait".to_owned() }
}

fn paused_at_first(shape: &Shape) -> SagaState {
    let (mut state, _) = machine::start(shape);
    assert_eq!(apply(shape, &mut state, pause()), Decision::default());
    assert_eq!(state.status(), Status::Paused);
    state
}

#[test]
fn what_is_in_flight_ends_and_what_comes_next_waits() {
    let shape = calls(&[None, None]);
    let mut state = paused_at_first(&shape);
    let done = apply(&shape, &mut state, Event::Done { step: 0 });
    assert!(done.record.is_some() && done.commands.is_empty(), "{done:?}");
    assert_eq!((state.steps[1].phase, state.status()), (StepPhase::Ready, Status::Paused));
    assert_eq!(apply(&shape, &mut state, Event::Resumed).commands, [Command::Do { step: 1 }]);
    assert_eq!(state.status(), Status::Running);
}

#[test]
fn of_a_group_all_that_waited_begins_at_once() {
    let shape = calls(&[None, Some(vec![0]), Some(vec![0])]);
    let mut state = paused_at_first(&shape);
    assert_eq!(apply(&shape, &mut state, Event::Done { step: 0 }).commands, []);
    let resumed = apply(&shape, &mut state, Event::Resumed).commands;
    assert_eq!(resumed, [Command::Do { step: 1 }, Command::Do { step: 2 }]);
}

#[test]
fn nothing_is_undone_before_it_is_resumed() {
    let shape = calls(&[None, None]);
    let (mut state, _) = machine::start(&shape);
    apply(&shape, &mut state, Event::Done { step: 0 });
    apply(&shape, &mut state, pause());
    let rejected = Event::Rejected { step: 1, failure: failure(1, FailureKind::Rejected) };
    assert_eq!(apply(&shape, &mut state, rejected).commands, []);
    assert_eq!(state.status(), Status::Paused);
    let undo = Command::Undo { step: 0, round: 1, known: true };
    assert_eq!(apply(&shape, &mut state, Event::Resumed).commands, [undo]);
    assert_eq!(state.status(), Status::Compensating);
}

#[test]
fn it_can_be_cancelled_and_stays_paused() {
    let shape = calls(&[None, None]);
    let (mut state, _) = machine::start(&shape);
    apply(&shape, &mut state, pause());
    apply(&shape, &mut state, Event::Done { step: 0 });
    let called_off = Event::CancelRequested { reason: rejection("no longer wanted"), has_begun: true };
    assert_eq!(apply(&shape, &mut state, called_off), Decision::default());
    assert_eq!((state.phase, state.status()), (machine::Phase::Compensating, Status::Paused));
    let undo = Command::Undo { step: 0, round: 1, known: true };
    assert_eq!(apply(&shape, &mut state, Event::Resumed).commands, [undo]);
}

#[test]
fn it_ends_when_nothing_is_left_to_do_and_its_pause_with_it() {
    let shape = calls(&[None]);
    let mut state = paused_at_first(&shape);
    apply(&shape, &mut state, Event::Done { step: 0 });
    assert_eq!((state.status(), &state.paused), (Status::Completed, &None));

    let mut state = paused_at_first(&shape);
    let called_off = Event::CancelRequested { reason: rejection("no longer wanted"), has_begun: true };
    apply(&shape, &mut state, called_off);
    assert_eq!(state.status(), Status::Paused, "its command is to be given back first");
    apply(&shape, &mut state, Event::Cancelled { step: 0 });
    assert_eq!(state.status(), Status::Compensated);
    // A success that comes after that is undone at once.
    assert_eq!(apply(&shape, &mut state, Event::LateSuccess { step: 0 }).commands.len(), 1);
}

#[test]
fn what_needs_a_person_needs_one_when_it_is_resumed() {
    let shape = calls(&[None, None]);
    let mut state = paused_at_first(&shape);
    let blocked = Event::Blocked { step: 0, reason: "no".to_owned(), in_doubt: false };
    assert!(apply(&shape, &mut state, blocked.clone()).became_stuck);
    assert_eq!(state.status(), Status::Paused);
    apply(&shape, &mut state, Event::Resumed);
    assert_eq!(state.status(), Status::Stuck);

    // Who decides about it while it is paused does not let it go on.
    let mut state = paused_at_first(&shape);
    apply(&shape, &mut state, blocked);
    assert_eq!(apply(&shape, &mut state, Event::Operator(Action::Skip)).commands, []);
    assert_eq!(apply(&shape, &mut state, Event::Resumed).commands, [Command::Do { step: 1 }]);
}

#[test]
fn what_is_parked_is_known_until_it_is_resumed() {
    let shape = calls(&[None]);
    let (mut state, _) = machine::start(&shape);
    let plain = state.encode();
    assert_eq!(apply(&shape, &mut state, Event::Parked { work: 3 }), Decision::default());
    assert_eq!(state.encode(), plain, "nobody has paused it");
    apply(&shape, &mut state, pause());
    for work in [3, 4, 3] {
        apply(&shape, &mut state, Event::Parked { work });
    }
    let state_again = SagaState::decode(&state.encode(), 1).expect("it is readable");
    assert_eq!(state_again.paused.expect("it is paused").parked, [3, 4]);
    apply(&shape, &mut state, Event::Resumed);
    assert_eq!(state.encode(), plain, "nothing is left of it");
}

#[test]
fn twice_and_after_the_end_it_is_refused() {
    let shape = calls(&[None]);
    let (mut state, _) = machine::start(&shape);
    assert_eq!(machine::apply(&shape, &mut state, Event::Resumed), Err(Refused::NotPaused));
    apply(&shape, &mut state, pause());
    let by_bob = Event::Paused { by: Some("bob".to_owned()), reason: "me too".to_owned() };
    assert_eq!(machine::apply(&shape, &mut state, by_bob), Err(Refused::Paused));
    assert_eq!(state.paused.as_ref().and_then(|pause| pause.by.as_deref()), Some("ann"));
    apply(&shape, &mut state, Event::Done { step: 0 });
    for event in [pause(), Event::Resumed] {
        assert_eq!(machine::apply(&shape, &mut state, event), Err(Refused::Ended));
    }
}
