//! Goes on in the direction that the saga has.

use super::compensate::begin_next_undos;
use super::decision::Decision;
use super::forward::begin_next_steps;
use super::state::shape::Shape;
use super::state::state::{Phase, SagaState};

/// Gives out the steps, or the undos, that may begin now. A saga that has ended stays as it is.
pub(super) fn advance(shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
    match state.phase {
        Phase::Running => begin_next_steps(shape, state, decision),
        Phase::Compensating => begin_next_undos(shape, state, decision),
        Phase::Completed | Phase::Compensated => {}
    }
}
