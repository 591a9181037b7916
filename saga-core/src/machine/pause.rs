//! A saga that a person has paused: what is in flight comes to its end, and nothing new begins until it is resumed.

use serde::{Deserialize, Serialize};

use super::compensate::go_on_undoing;
use super::decision::Decision;
use super::event::Refused;
use super::shape::Shape;
use super::state::{Phase, SagaState};
use super::transition::go_on;

/// Why a saga is paused, and what of it waits for that to end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Who paused it, where that was said.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(rename = "r")]
    pub reason: String,
    /// The work rows that fell due meanwhile. They wait until the saga is resumed, with all that is known of them.
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    pub parked: Vec<i64>,
}

impl SagaState {
    /// Whether a person has paused it, and it has not ended since.
    pub fn is_paused(&self) -> bool {
        self.paused.is_some() && !self.has_ended()
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Completed | Phase::Compensated)
    }
}

/// From now on nothing new begins. Who paused it first, and why, is not written over.
pub(super) fn pause(state: &mut SagaState, by: Option<String>, reason: String) -> Result<(), Refused> {
    if state.has_ended() {
        return Err(Refused::Ended);
    }
    if state.paused.is_some() {
        return Err(Refused::Paused);
    }
    state.paused = Some(Box::new(Pause { by, reason, parked: Vec::new() }));
    Ok(())
}

/// A command fell due, or was given back, while the saga is paused.
pub(super) fn park(state: &mut SagaState, work: i64) {
    if let Some(pause) = state.paused.as_mut().filter(|pause| !pause.parked.contains(&work)) {
        pause.parked.push(work);
    }
}

/// Everything whose turn came meanwhile begins now. What was parked is not given out again: its rows fall due.
pub(super) fn resume(shape: &Shape, state: &mut SagaState, decision: &mut Decision) -> Result<(), Refused> {
    if state.has_ended() {
        return Err(Refused::Ended);
    }
    if state.paused.take().is_none() {
        return Err(Refused::NotPaused);
    }
    match state.phase {
        Phase::Running => go_on(shape, state, decision),
        Phase::Compensating => go_on_undoing(shape, state, decision),
        Phase::Completed | Phase::Compensated => {}
    }
    Ok(())
}
