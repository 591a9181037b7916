use std::future::Future;

use super::error::RuntimeError;

tokio::task_local! {
    static IN_TRANSACTION: ();
}

/// Marks a handler that holds a connection of the store: a call of the runtime from inside would wait for it for ever.
pub(super) fn inside_step<F: Future>(handler: F) -> impl Future<Output = F::Output> {
    IN_TRANSACTION.scope((), handler)
}

/// Whether the caller runs inside a transactional handler.
pub(super) fn is_inside_step() -> bool {
    IN_TRANSACTION.try_with(|()| ()).is_ok()
}

/// Refuses a caller that runs inside a transactional handler.
pub(super) fn outside_step() -> Result<(), RuntimeError> {
    if is_inside_step() { Err(RuntimeError::InsideStep) } else { Ok(()) }
}
