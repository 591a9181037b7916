//! Sagas that are steps of others.

use super::shape::Shape;
use super::state::{Failure, FailureKind, Phase, SagaState};
use crate::step::Rejection;

/// A saga that never begins, since the one that would have started it compensates: it stands in the way of a late start.
pub fn barred(shape: &Shape, reason: &str) -> SagaState {
    let failure = Failure { step: 0, kind: FailureKind::Cancelled, reason: Rejection::new(reason) };
    SagaState { phase: Phase::Compensated, failure: Some(failure), ..SagaState::new(shape.steps.len()) }
}
