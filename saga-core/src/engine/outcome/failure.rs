//! Why a saga has no result.

use std::any::TypeId;

use super::outcome::{CompensationCause, Outcome};
use crate::engine::context::RuntimeError;
use crate::step::{CodecError, Payload, Rejection, codec};
use crate::store::Status;

/// Why [`SagaHandle::result`](crate::SagaHandle::result) has no result to return.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SagaFailure {
    /// A step was rejected, or failed for good. What took effect is undone.
    #[error("the saga was compensated, because `{step}` failed: {reason}")]
    StepFailed {
        /// The step.
        step: String,
        /// Why.
        reason: Rejection,
    },
    /// The saga was cancelled. What took effect is undone.
    #[error("the saga was compensated, because it was cancelled: {reason}")]
    Cancelled {
        /// Why.
        reason: Rejection,
    },
    /// The deadline of the saga passed. What took effect is undone.
    #[error("the saga was compensated, because its deadline passed: {reason}")]
    DeadlinePassed {
        /// How long it had.
        reason: Rejection,
    },
    /// It needs an operator, and may still end either way. [`SagaHandle::closed`](crate::SagaHandle::closed) waits for that.
    #[error("the saga is stuck at `{step}`, and an operator has to decide: {reason}")]
    Stuck {
        /// The step that cannot go on.
        step: String,
        /// Why.
        reason: String,
    },
    /// An operator ended the saga by force, as completed or as compensated.
    #[error("the saga has no result, because an operator ended it: {reason}")]
    Forced {
        /// The reason that the operator gave.
        reason: String,
    },
    /// The saga completed, and its result could not be made.
    #[error("the saga completed without a result: {reason}")]
    NoResult {
        /// Why.
        reason: String,
    },
    /// Only a tombstone of the saga is kept: it ended longer ago than its definition [keeps](crate::Retention) sagas.
    #[error("the saga was {status}, and only its tombstone is kept")]
    Tombstone {
        /// How it ended: completed or compensated.
        status: Status,
    },
    /// The saga returned a value of another type: its definition was another one when it completed.
    #[error("the result of the saga cannot be read as {0}")]
    Unreadable(#[from] CodecError),
    /// The runtime failed, or ended before the saga did.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl Outcome {
    /// What the saga returned.
    pub(crate) fn into_result<R: Payload>(self) -> Result<R, SagaFailure> {
        match self {
            // Nothing is read, so there is no result to miss.
            Self::Completed { .. } if TypeId::of::<R>() == TypeId::of::<()>() => Ok(codec::<R>().decode(b"null")?),
            Self::Completed { result: Some(result), .. } => Ok(result.read()?),
            Self::Completed { no_result: Some(reason), .. } => Err(SagaFailure::NoResult { reason }),
            Self::Completed { forced: Some(reason), .. } => Err(SagaFailure::Forced { reason }),
            Self::Completed { .. } => {
                let reason = "its definition returned none when it completed".to_owned();
                Err(SagaFailure::NoResult { reason })
            }
            Self::Stuck { step, reason } => Err(SagaFailure::Stuck { step, reason }),
            Self::Tombstone { status: Status::Completed } if TypeId::of::<R>() == TypeId::of::<()>() => {
                Ok(codec::<R>().decode(b"null")?)
            }
            Self::Tombstone { status } => Err(SagaFailure::Tombstone { status }),
            Self::Compensated { failed_step: step, reason, cause, .. } => Err(match cause {
                CompensationCause::StepFailed => SagaFailure::StepFailed { step, reason },
                CompensationCause::Cancelled => SagaFailure::Cancelled { reason },
                CompensationCause::DeadlinePassed => SagaFailure::DeadlinePassed { reason },
                CompensationCause::Forced => SagaFailure::Forced { reason: reason.to_string() },
            }),
        }
    }
}
