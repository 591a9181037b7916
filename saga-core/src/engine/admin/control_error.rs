//! Why a wish of somebody outside was not done.

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
