//! A saga that is moved to another version at each of its boundaries: what is done there, and what must come of it.

mod concurrent;
mod driver;
mod plan;
mod report;
mod run;

pub use self::report::Moves;

pub(super) use self::driver::move_everywhere;
