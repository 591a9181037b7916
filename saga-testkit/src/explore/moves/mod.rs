//! A saga that is moved to another version at each of its boundaries: what is done there, and what must come of it.

mod beside;
mod course;
mod everywhere;
mod plan;
mod report;

pub use self::report::Moves;

pub(super) use self::plan::Point;
