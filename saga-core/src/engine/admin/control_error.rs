//! Why an operator's action was refused.

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
