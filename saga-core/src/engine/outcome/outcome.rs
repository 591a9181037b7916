//! How a saga ended.

use std::fmt;

use serde::Serialize;

use super::result::SagaResult;
use crate::key::StepId;
use crate::machine::{Failure, FailureKind, KeptResult, Phase, SagaState, Shape};
use crate::step::Rejection;
use crate::store::{SagaRow, Status};

/// How a saga ended, or that it needs a person.
///
/// In JSON, `kind` is `completed`, `compensated`, `stuck` or `tombstone`, beside the fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// Every step is done.
    #[non_exhaustive]
    Completed {
        /// The reason that an operator gave for ending it so.
        forced: Option<String>,
        /// What it returned; `None` if its definition does not say what a saga
        /// [returns](crate::saga::SagaBuilder::returns), if an operator ended it so, or if the result could not be made.
        result: Option<SagaResult>,
        /// Why the result could not be made.
        no_result: Option<String>,
    },
    /// Every step that took effect is undone.
    #[non_exhaustive]
    Compensated {
        /// The step that failed. If none failed, the step that the saga had come to; empty if an operator ended it.
        failed_step: String,
        /// Why the saga failed or was compensated.
        reason: Rejection,
        /// What made it compensate.
        cause: CompensationCause,
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
    /// It ended longer ago than its definition [keeps](crate::Retention) sagas: only its key and how it ended are known.
    #[non_exhaustive]
    Tombstone {
        /// How it ended: completed or compensated.
        status: Status,
    },
}

impl Outcome {
    /// What a tombstone says; nothing of another saga.
    pub(crate) fn of_tombstone(row: &SagaRow) -> Option<Self> {
        row.is_tombstone().then_some(Self::Tombstone { status: row.status })
    }
}

/// What made a saga compensate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompensationCause {
    /// A step failed.
    StepFailed,
    /// The saga was cancelled.
    Cancelled,
    /// The deadline of the saga passed.
    DeadlinePassed,
    /// An operator ended a saga as compensated that had not failed.
    Forced,
}

impl CompensationCause {
    fn of(failure: &Failure) -> Self {
        match failure.kind {
            FailureKind::Rejected | FailureKind::Failed | FailureKind::Unknown => Self::StepFailed,
            FailureKind::Cancelled => Self::Cancelled,
            FailureKind::Deadline => Self::DeadlinePassed,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed { .. } => f.write_str("completed"),
            Self::Compensated { failed_step, reason, cause, .. } => match cause {
                CompensationCause::StepFailed => write!(f, "compensated, because `{failed_step}` failed: {reason}"),
                CompensationCause::Cancelled => write!(f, "compensated, because it was cancelled: {reason}"),
                CompensationCause::DeadlinePassed => write!(f, "compensated, because its deadline passed: {reason}"),
                CompensationCause::Forced => write!(f, "compensated, because an operator ended it: {reason}"),
            },
            Self::Stuck { step, reason } => write!(f, "stuck at `{step}`: {reason}"),
            Self::Tombstone { status } => write!(f, "{status}, and only its tombstone is kept"),
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
        Phase::Completed => {
            let (result, no_result) = match state.result.as_deref() {
                None => (None, None),
                Some(KeptResult::Value(value)) => (Some(SagaResult::new(value)), None),
                Some(KeptResult::NotMade(reason)) => (None, Some(reason.clone())),
            };
            Some(Outcome::Completed { forced: state.forced.clone(), result, no_result })
        }
        Phase::Compensated => {
            let forced = state.forced.clone();
            let (failed_step, reason, cause) = if let Some(failure) = &state.failure {
                (name(failure.step), failure.reason.clone(), CompensationCause::of(failure))
            } else {
                let reason = Rejection::new(forced.as_deref().unwrap_or("ended by an operator"));
                (String::new(), reason, CompensationCause::Forced)
            };
            Some(Outcome::Compensated { failed_step, reason, cause, forced })
        }
    }
}
