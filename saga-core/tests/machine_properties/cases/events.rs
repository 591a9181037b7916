//! The events and shapes of these cases.

use saga_core::machine::{self, Action, Decision, Effect, Event, FailureKind, SagaState, Shape, StepShape, UndoShape};

use crate::shapes::failure;

pub(super) fn calls(steps: usize, undo: UndoShape, pivot: Option<usize>) -> Shape {
    let step = |index| StepShape::new(["a", "b", "c"][index], Effect::External, undo);
    Shape { steps: (0..steps).map(step).collect(), pivot }
}

pub(super) fn apply(shape: &Shape, state: &mut SagaState, event: Event) -> Decision {
    machine::apply(shape, state, event).expect("the event is accepted")
}

pub(super) fn blocked(step: usize, maybe: bool) -> Event {
    Event::Blocked { step, reason: "no".to_owned(), in_doubt: maybe }
}

pub(super) fn unknown(step: usize) -> Event {
    Event::Unknown { step, failure: failure(step, FailureKind::Unknown) }
}

pub(super) fn force(completed: bool) -> Event {
    Event::Operator(Action::Force { completed, reason: "by hand".to_owned() })
}
