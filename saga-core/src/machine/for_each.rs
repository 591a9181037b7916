//! Steps that run once per item of a list.

use super::decision::Decision;
use super::forward::begin_next_steps;
use super::settle::unblock;
use super::state::shape::Shape;
use super::state::state::{Phase, SagaState};
use super::state::step_state::StepPhase;
use super::step_outcome::without_effect;
use crate::store::RecordedOutcome;

/// The list of a step is known: from now on each of its items is a step of the state.
pub(super) fn listed(shape: &Shape, state: &mut SagaState, step: usize, items: usize, decision: &mut Decision) {
    let is_awaited = shape.each(step).is_some() && state.items_of(step).is_none();
    if !is_awaited || state.steps[step].phase != StepPhase::Started {
        return;
    }
    if state.phase != Phase::Running {
        // The saga started compensating meanwhile: no item begins.
        return without_effect(shape, state, step, RecordedOutcome::Cancelled, None, decision);
    }
    state.add_items(step, items);
    (state.steps[step].phase, state.steps[step].in_doubt) = (StepPhase::FannedOut, false);
    decision.listed = Some((step, state.next_position()));
    unblock(state, step, false, decision);
    begin_next_steps(shape, state, decision);
}
