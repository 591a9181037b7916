//! Runs schedules: what they have in common, the course of one, and its result.

mod course;
mod parts;
mod report;
mod run;

pub use self::report::Report;
pub use self::run::{run, run_logged, run_mutant};
