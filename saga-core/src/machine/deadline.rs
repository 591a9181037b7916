//! The deadline of a saga: the time by which it must have come to its pivot, or be done where it has none.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::call_off::call_off;
use super::decision::Decision;
use super::event::Refused;
use super::shape::Shape;
use super::state::{FailureKind, Phase, SagaState, StepPhase};
use super::timer::Timer;
use crate::step::Rejection;

/// A deadline that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// The work row that falls due when it passes.
    #[serde(rename = "t")]
    pub timer: Timer,
    /// How long the saga had, counted from when it was to begin.
    #[serde(rename = "d")]
    pub within: Duration,
}

/// The saga turned round, or only goes forward from now on, or has ended: its deadline says nothing any more. Answers its
/// row, which goes.
pub(super) fn let_go(shape: &Shape, state: &mut SagaState) -> Option<Timer> {
    let is_over = state.phase != Phase::Running || has_come_to_pivot(shape, state);
    state.deadline.take_if(|_| is_over).map(|deadline| deadline.timer)
}

/// The deadline passed, and the row that said so goes: the saga is called off.
pub(super) fn passed(shape: &Shape, state: &mut SagaState, decision: &mut Decision) -> Result<(), Refused> {
    let deadline = state.deadline.ok_or(Refused::InTime)?;
    let reason = Rejection::new(format!("it was to be done within {:?}", deadline.within));
    call_off(shape, state, FailureKind::Deadline, reason, false, decision)?;
    state.deadline = None;
    Ok(())
}

/// A saga that begins gets a deadline, unless it begins with its pivot: then it only goes forward from the start.
pub fn set_deadline(shape: &Shape, state: &mut SagaState, deadline: Deadline) -> bool {
    state.deadline = (!has_come_to_pivot(shape, state)).then_some(deadline);
    state.deadline.is_some()
}

fn has_come_to_pivot(shape: &Shape, state: &SagaState) -> bool {
    shape.pivot.is_some_and(|pivot| state.steps[pivot].phase != StepPhase::Ready)
}
