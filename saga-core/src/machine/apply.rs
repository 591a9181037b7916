//! [`apply`] moves a saga by one event.

use super::choice::chosen;
use super::compensate::{compensated, undo_blocked};
use super::deadline;
use super::decision::Decision;
use super::event::{Event, Refused};
use super::for_each::listed;
use super::hosting::host_undo::undo_requested;
use super::late::{done, late_success, late_unknown};
use super::lock::LocksBefore;
use super::operating::lock_lost::unlocked;
use super::operating::pause::{park, pause, resume};
use super::operating::restart::restart;
use super::operating::{cancel, operator};
use super::settle::block;
use super::signal::receive;
use super::state::failure::FailureKind;
use super::state::shape::{Shape, Side};
use super::state::state::{Phase, SagaState};
use super::state::step_state::StepPhase;
use super::step_outcome::{blocked, cancelled, unknown, without_effect};
use crate::store::RecordedOutcome;

/// Moves a saga. Every event is accepted in every phase: one that arrives late or twice changes nothing, or is a fact that
/// counts.
///
/// # Errors
/// Only an operator's action, cancelling, pausing and resuming, a deadline and a signal are refused; then nothing changed.
pub fn apply(shape: &Shape, state: &mut SagaState, event: Event) -> Result<Decision, Refused> {
    let mut decision = Decision::default();
    let locks = LocksBefore::of(shape, state);
    match event {
        // The engine makes choices with an event of its own, which says which arm runs.
        Event::Done { step } if shape.is_choice(step) => chosen(shape, state, step, None, &mut decision),
        Event::LateSuccess { step } | Event::LateUnknown { step } if shape.is_choice(step) || shape.is_wait(step) => {}
        // A wait is over when the saga starts compensating.
        Event::Done { step } if shape.is_wait(step) && state.steps[step].phase != StepPhase::Started => {}
        Event::Done { step } => done(shape, state, step, &mut decision),
        Event::Chosen { step, arm } => chosen(shape, state, step, arm, &mut decision),
        Event::Listed { step, items } => listed(shape, state, step, items, &mut decision),
        Event::Rejected { step, failure } | Event::Failed { step, failure }
            if shape.side(state.base(step)) == Side::After && state.phase != Phase::Compensating =>
        {
            let what = if failure.kind == FailureKind::Rejected { "rejected" } else { "failed" };
            block(shape, state, step, false, format!("{what} after the pivot: {}", failure.reason), &mut decision);
        }
        Event::Rejected { step, failure } => {
            without_effect(shape, state, step, RecordedOutcome::Rejected, Some(failure), &mut decision);
        }
        Event::Failed { step, failure } => {
            without_effect(shape, state, step, RecordedOutcome::Failed, Some(failure), &mut decision);
        }
        Event::Cancelled { step } => cancelled(shape, state, step, &mut decision),
        Event::Unknown { step, failure } => unknown(shape, state, step, failure, &mut decision),
        Event::Blocked { step, reason, in_doubt } => blocked(shape, state, step, reason, in_doubt, &mut decision),
        Event::Undone { step, informed } => compensated(shape, state, step, informed, &mut decision),
        Event::UndoBlocked { step, reason } => undo_blocked(shape, state, step, reason, &mut decision),
        Event::UndoRequested => undo_requested(shape, state, &mut decision),
        Event::CancelRequested { reason, has_begun } => {
            let is_fresh = !has_begun && cancel::is_fresh(shape, state);
            cancel::cancel(shape, state, FailureKind::Cancelled, reason, is_fresh, &mut decision)?;
        }
        Event::Signalled { step, id } => receive(shape, state, step, id, &mut decision)?,
        Event::DeadlinePassed => deadline::passed(shape, state, &mut decision)?,
        Event::LateSuccess { step } => late_success(shape, state, step, &mut decision),
        Event::LateUnknown { step } => late_unknown(shape, state, step, &mut decision),
        Event::Restarted { steps, not_taken } => restart(shape, state, &steps, &not_taken, &mut decision),
        Event::Paused { by, reason } => pause(state, by, reason)?,
        Event::Parked { work } => park(state, work),
        Event::Unlocked { step } => unlocked(shape, state, step, &mut decision)?,
        Event::Resumed => resume(shape, state, &mut decision)?,
        Event::Operator(action) => operator::act(shape, state, action, &mut decision)?,
    }
    if state.paused.is_some() && state.has_ended() {
        // A pause ends with its saga: what is reported later is undone at once.
        state.paused = None;
    }
    decision.withdrawn.extend(deadline::remove_if_over(shape, state));
    decision.released.extend(locks.released(shape, state));
    Ok(decision)
}
