//! Why an operator's action was refused.

use std::ops::ControlFlow;

use crate::engine::commit::{CONFLICTS_MAX, retry_on_conflict};
use crate::engine::context::RuntimeError;
use crate::machine::Refused;
use crate::store::Status;

/// Why a saga was left unchanged.
pub(crate) enum ControlError {
    /// The saga or one of its rows has changed: read it again.
    Moved,
    /// The machine does not allow the action.
    Refused(Refused, Status),
    /// The action is not possible for this saga.
    Error(RuntimeError),
}

impl From<RuntimeError> for ControlError {
    fn from(error: RuntimeError) -> Self {
        Self::Error(error)
    }
}

/// The result of an operator's action, or why the saga refuses it, and the status of the saga.
pub(crate) type Applied<T> = Result<T, (Refused, Status)>;

/// Makes an attempt at an action, again as long as other decisions about the saga are committed first.
pub(crate) async fn until_applied<T, F>(mut attempt: impl FnMut() -> F) -> Result<Applied<T>, RuntimeError>
where
    F: Future<Output = Result<T, ControlError>>,
{
    loop {
        let applied = retry_on_conflict(CONFLICTS_MAX, || {
            let attempt = attempt();
            async {
                match attempt.await {
                    Ok(done) => Ok(ControlFlow::Break(Ok(done))),
                    Err(ControlError::Moved) => Ok(ControlFlow::Continue(())),
                    Err(ControlError::Refused(refusal, status)) => Ok(ControlFlow::Break(Err((refusal, status)))),
                    Err(ControlError::Error(error)) => Err(error),
                }
            }
        });
        if let Some(applied) = applied.await? {
            return Ok(applied);
        }
    }
}
