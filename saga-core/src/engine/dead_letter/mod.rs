//! Dead letters: stores messages that cannot be handled, and replies to their senders.

mod broker;
mod dead_letters;

pub(crate) use self::dead_letters::DeadLetters;
