//! Virtual time: deadlines, sleeps, backoffs and time limits of a day are tested in milliseconds.
//!
//! [`VirtualTime`] is one clock for the runtimes and the stores of a test. It jumps from event to event.

mod clock;
mod environment;
mod kinds;
mod sleep;
mod state;
mod unit;
mod virtual_time;

pub(crate) use self::environment::VirtualEnvironment;
pub use self::kinds::TimeStatistics;
pub use self::virtual_time::VirtualTime;
