//! What became of an action on one saga.

use crate::store::Status;

/// The outcome of [`cancel`](crate::engine::SagaControl::cancel), [`pause`](crate::engine::SagaControl::pause) and
/// [`resume`](crate::engine::SagaControl::resume), which can be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlOutcome {
    /// This call did it.
    Applied,
    /// The saga compensates already, is paused already, or is not paused. Nothing was changed.
    Already,
    /// The saga has ended. Nothing was changed.
    Ended(Status),
}
