//! A saga that is started instead of one that has come to nothing: from each step, with crashes, and with failures behind.

mod course;
mod everywhere;
mod plan;
mod report;
mod restarted;

pub use self::report::Restarts;
pub use self::restarted::Restarted;
