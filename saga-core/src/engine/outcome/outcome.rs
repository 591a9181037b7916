//! How a saga ended.

use std::fmt;

use crate::key::StepId;
use crate::machine::{FailureKind, Phase, SagaState, Shape};
use crate::step::Rejection;

/// How a saga ended, or that it needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every step is done.
    #[non_exhaustive]
    Completed {
        /// The reason that an operator gave for ending it so.
        forced: Option<String>,
    },
    /// Every step that took effect is undone.
    #[non_exhaustive]
    Compensated {
        /// The step that failed; where none did, the one that the saga had come to.
        failed_step: String,
        /// Why the saga failed or was compensated.
        reason: Rejection,
        /// Whether no step failed: it was cancelled.
        cancelled: bool,
        /// Whether no step failed: its deadline passed.
        overdue: bool,
        /// The reason that an operator gave for ending it so.
        forced: Option<String>,
    },
    /// It needs a person. Nothing is lost, and it may still end either way.
    #[non_exhaustive]
    Stuck {
        /// The step that cannot go on.
        step: String,
        /// Why.
        reason: String,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed { .. } => f.write_str("completed"),
            Self::Compensated { reason, cancelled: true, .. } => {
                write!(f, "compensated, because it was cancelled: {reason}")
            }
            Self::Compensated { reason, overdue: true, .. } => {
                write!(f, "compensated, because its deadline passed: {reason}")
            }
            Self::Compensated { failed_step, reason, .. } => {
                write!(f, "compensated, because `{failed_step}` failed: {reason}")
            }
            Self::Stuck { step, reason } => write!(f, "stuck at `{step}`: {reason}"),
        }
    }
}

/// The outcome of a saga in this state, if it has one.
pub(crate) fn outcome_of(shape: &Shape, state: &SagaState) -> Option<Outcome> {
    outcome_by(|step| shape.steps.get(step).map_or("", |step| step.name), state)
}

/// The same, where only the names of the steps are known.
pub(crate) fn outcome_by<'a>(name_of: impl Fn(usize) -> &'a str, state: &SagaState) -> Option<Outcome> {
    let name = |step: usize| {
        let of = name_of(state.base(step));
        state.item_number(step).map_or_else(|| of.to_owned(), |item| StepId::of_item(of, item).to_string())
    };
    if let Some(stuck) = &state.stuck {
        return Some(Outcome::Stuck { step: name(stuck.step), reason: stuck.reason.clone() });
    }
    match state.phase {
        Phase::Running | Phase::Compensating => None,
        Phase::Completed => Some(Outcome::Completed { forced: state.forced.clone() }),
        Phase::Compensated => {
            let (failed_step, reason) = match &state.failure {
                Some(failure) => (name(failure.step), failure.reason.clone()),
                None => (String::new(), Rejection::new(state.forced.as_deref().unwrap_or("ended by an operator"))),
            };
            let is = |kind| state.failure.as_ref().is_some_and(|failure| failure.kind == kind);
            let (cancelled, overdue) = (is(FailureKind::Cancelled), is(FailureKind::Deadline));
            Some(Outcome::Compensated { failed_step, reason, cancelled, overdue, forced: state.forced.clone() })
        }
    }
}
