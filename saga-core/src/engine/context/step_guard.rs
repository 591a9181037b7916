//! Refuses calls of the runtime from inside a transactional step: they could wait for ever for the connection of that step.

use std::future::Future;

use super::error::RuntimeError;

tokio::task_local! {
    static IN_TRANSACTION: ();
}

/// Marks a handler that holds a connection of the store.
pub(crate) fn inside_step<F: Future>(handler: F) -> impl Future<Output = F::Output> {
    IN_TRANSACTION.scope((), handler)
}

/// Whether the caller runs inside a transactional handler.
pub(crate) fn is_inside_step() -> bool {
    IN_TRANSACTION.try_with(|()| ()).is_ok()
}

/// Refuses a caller that runs inside a transactional handler.
pub(crate) fn outside_step() -> Result<(), RuntimeError> {
    if is_inside_step() { Err(RuntimeError::InsideStep) } else { Ok(()) }
}
