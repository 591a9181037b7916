//! Messages that cannot be handled.

mod broker;
mod dead_letters;

pub(crate) use self::dead_letters::DeadLetters;
