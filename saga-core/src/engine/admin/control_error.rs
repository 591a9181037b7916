//! Why a wish of somebody outside was not done.

use std::ops::ControlFlow;

use crate::engine::commit::{CONFLICTS_MAX, retry_on_conflict};
use crate::engine::context::RuntimeError;
use crate::machine::Refused;
use crate::store::Status;

/// Why nothing was done to a saga.
pub(crate) enum ControlError {
    /// It moved, or a command of it did: it is to be looked at again.
    Moved,
    /// The machine refuses.
    Refused(Refused, Status),
    /// It cannot be.
    Error(RuntimeError),
}

impl From<RuntimeError> for ControlError {
    fn from(error: RuntimeError) -> Self {
        Self::Error(error)
    }
}

/// What an operator's action came to: its result, or why the saga refuses it and how the saga stands.
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
