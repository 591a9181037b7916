//! The deadline of a saga: the time by which its pivot must have begun, or all of it be done where it has no pivot.

use super::decision::Decision;
use super::event::Refused;
use super::operating::cancel::cancel;
use super::state::failure::FailureKind;
use super::state::shape::Shape;
use super::state::state::{Phase, SagaState};
use super::state::step_state::StepPhase;
use super::state::timer::{Deadline, Timer};
use crate::step::Rejection;

/// Removes the deadline of a saga that compensates, only goes forward from now on, or has ended. Returns its row, which is
/// withdrawn.
pub(super) fn remove_if_over(shape: &Shape, state: &mut SagaState) -> Option<Timer> {
    let is_over = state.phase != Phase::Running || has_begun_pivot(shape, state);
    state.deadline.take_if(|_| is_over).map(|deadline| deadline.timer)
}

/// The deadline passed, and the row that said so is gone: the saga is cancelled.
pub(super) fn passed(shape: &Shape, state: &mut SagaState, decision: &mut Decision) -> Result<(), Refused> {
    let deadline = state.deadline.ok_or(Refused::NoDeadline)?;
    let reason = Rejection::new(format!("it was to be done within {:?}", deadline.within));
    cancel(shape, state, FailureKind::Deadline, reason, false, decision)?;
    state.deadline = None;
    Ok(())
}

/// Gives a saga that begins its deadline, and returns whether it has one. A saga that begins with its pivot has none, since
/// it only goes forward from the start.
pub fn set_deadline(shape: &Shape, state: &mut SagaState, deadline: Deadline) -> bool {
    state.deadline = (!has_begun_pivot(shape, state)).then_some(deadline);
    state.deadline.is_some()
}

fn has_begun_pivot(shape: &Shape, state: &SagaState) -> bool {
    shape.pivot.is_some_and(|pivot| state.steps[pivot].phase != StepPhase::Ready)
}
