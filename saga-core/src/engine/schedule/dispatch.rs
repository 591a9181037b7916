//! The port through which the scheduler starts commands that do not wait in a queue.

use crate::engine::instance::WorkItem;
use crate::store::Store;

/// Starts commands that need no worker. The components that execute commands are above the scheduler, and implement this.
pub(crate) trait Dispatch<S: Store>: Send + Sync {
    /// Starts a call that has its permit.
    fn start_call(&self, item: WorkItem<S>);

    /// Sends the command of a remote step again.
    fn resend(&self, item: WorkItem<S>);
}

/// The dispatcher, set when the runtime is built. It is weak, since the dispatcher owns the scheduler.
pub(crate) type DispatchPort<S> = std::sync::OnceLock<std::sync::Weak<dyn Dispatch<S>>>;
