//! Doing what the plan says.

mod copies;
mod counts;
mod dead_letters;
mod full_disk;
mod full_queue;
mod injector;
mod overload;
mod partition;
mod unread_log;

pub(crate) use copies::copy_everything;
pub(crate) use counts::{Count, Counts};
pub(crate) use dead_letters::DeadLetters;
pub(crate) use injector::{Injector, Locks};
pub(crate) use overload::CALLS;
