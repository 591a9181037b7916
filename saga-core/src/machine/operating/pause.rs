//! Pausing a saga: what is in flight ends, and nothing new begins until an operator resumes it.

use crate::machine::advance::advance;
use crate::machine::decision::Decision;
use crate::machine::event::Refused;
use crate::machine::state::shape::Shape;
use crate::machine::state::state::{Pause, SagaState};

/// From now on nothing new begins. A second pause does not replace the actor and the reason of the first.
pub(in crate::machine) fn pause(state: &mut SagaState, by: Option<String>, reason: String) -> Result<(), Refused> {
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
pub(in crate::machine) fn park(state: &mut SagaState, work: i64) {
    if let Some(pause) = state.paused.as_mut().filter(|pause| !pause.parked.contains(&work)) {
        pause.parked.push(work);
    }
}

/// Everything that could have begun meanwhile begins now. Parked commands are not given out again: their rows fall due.
pub(in crate::machine) fn resume(shape: &Shape, state: &mut SagaState, decision: &mut Decision) -> Result<(), Refused> {
    if state.has_ended() {
        return Err(Refused::Ended);
    }
    if state.paused.take().is_none() {
        return Err(Refused::NotPaused);
    }
    advance(shape, state, decision);
    Ok(())
}
