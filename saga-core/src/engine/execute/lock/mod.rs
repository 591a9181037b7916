//! Asking the store for locks: semantic locks, and the locks of steps.

mod lock_requests;
mod step_locks;

pub(crate) use self::lock_requests::LockRequests;
pub(crate) use self::step_locks::StepLocks;
