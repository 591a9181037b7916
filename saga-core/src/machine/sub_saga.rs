//! Sub-sagas: sagas that are steps of others.

use super::state::failure::{Failure, FailureKind};
use super::state::shape::{Shape, StepShape};
use super::state::state::{Phase, SagaState};

/// A saga that never begins, since the saga that would have started it compensates. It prevents a late start.
pub fn tombstone(shape: &Shape, reason: &str) -> SagaState {
    let failure = Failure::new(0, FailureKind::Cancelled, reason);
    SagaState { phase: Phase::Compensated, failure: Some(failure), ..SagaState::new(shape.steps.len()) }
}

/// Why a step that has begun cannot go on as this step of another version, where one of them is a sub-saga.
pub(super) fn cannot_move(was: &StepShape, is: &StepShape) -> Option<String> {
    let (name, child) = (was.name, was.child.as_deref());
    if child != is.child.as_deref() {
        let other = |child: Option<&str>| child.map_or("no saga".to_owned(), |child| format!("the saga `{child}`"));
        return Some(format!(
            "`{name}` has begun, and is {} in one version and {} in the other",
            other(child),
            other(is.child.as_deref())
        ));
    }
    let is_renamed = child.is_some() && name != is.name;
    is_renamed
        .then(|| format!("`{name}` has begun, and the key of its saga goes with its name; call the new step by it"))
}
