//! A run: it executes a plan, and judges the result.

mod absent_faults;
mod options;
mod verdict;
mod world;

pub use self::options::{Options, Where};
pub use self::world::run;
