//! A seeded executor: one thread, virtual time, and processes that can be crashed and stopped.
//!
//! At each turn one of the ready tasks is picked at random. When none is ready, time jumps to the next timer. A crash
//! drops all tasks of a process between two polls, as SIGKILL ends a process at any of its awaits. The same seed gives
//! the same schedule, and [`Executor::trace`] is a hash of it.

mod control;
mod core;
mod environment;
mod run;
mod sleep;
mod timers;

pub use self::control::Control;
pub use self::core::ProcessId;
pub use self::environment::SimEnvironment;
pub use self::run::{Executor, Finish, Limits, Panicked};
