//! The tasks of a runtime: spawned, counted, restarted after a panic, and stopped.

mod backoff;
mod lifecycle;
mod supervisor;
mod tasks;

pub(crate) use self::backoff::{PAUSE, backoff_after};
pub(crate) use self::lifecycle::Lifecycle;
pub use self::supervisor::Panicked;
pub(crate) use self::supervisor::as_seconds;
pub(crate) use self::tasks::TaskGuard;
