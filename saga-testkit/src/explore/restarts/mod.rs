//! A saga that is started instead of one that has come to nothing: from each step, with crashes, and with failures behind.

mod driver;
mod plan;
mod report;
mod restarted;
mod run;

pub use self::report::Restarts;
pub use self::restarted::Restarted;

pub(super) use self::driver::restart_everywhere;
