//! Choices that are made.

use super::arms::leave_out_other_arms;
use super::decision::Decision;
use super::forward::begin_next_steps;
use super::settle::settle;
use super::state::shape::Shape;
use super::state::state::{Phase, SagaState};
use super::state::step_state::StepPhase;
use super::step_outcome::without_effect;
use crate::store::RecordedOutcome;

/// A choice was made: it is recorded like a step that is done, and the steps of its other arms never run.
pub(super) fn chosen(shape: &Shape, state: &mut SagaState, choice: usize, arm: Option<usize>, decision: &mut Decision) {
    if !shape.is_choice(choice) || state.steps[choice].phase != StepPhase::Started {
        return;
    }
    if state.phase != Phase::Running {
        // The saga started compensating meanwhile: no arm begins.
        return without_effect(shape, state, choice, RecordedOutcome::Cancelled, None, decision);
    }
    settle(state, choice, StepPhase::Done, RecordedOutcome::Done, decision);
    leave_out_other_arms(shape, state, choice, arm);
    begin_next_steps(shape, state, decision);
}
