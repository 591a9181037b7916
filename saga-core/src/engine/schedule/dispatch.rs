//! The port through which the scheduler starts what does not wait in a queue.

use crate::engine::instance::WorkItem;
use crate::store::Store;

/// Runs commands that need no worker. The components that execute commands lie above the scheduler and give it this.
pub(crate) trait Dispatch<S: Store>: Send + Sync {
    /// Starts a call that has its permit.
    fn start_call(&self, item: WorkItem<S>);

    /// Sends the command of a remote step again.
    fn resend(&self, item: WorkItem<S>);
}

/// The dispatcher, set when the runtime is put together. It is weak, since what it refers to refers to the scheduler.
pub(crate) type DispatchPort<S> = std::sync::OnceLock<std::sync::Weak<dyn Dispatch<S>>>;
