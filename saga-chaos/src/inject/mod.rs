//! Doing what the plan says.

mod copies;
mod counts;
mod injector;

pub(crate) use copies::copy_everything;
pub(crate) use counts::{Count, Counts};
pub(crate) use injector::Injector;
