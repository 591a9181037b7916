//! Dead letters: messages that could not be handled. List, show, replay and discard them.

mod command;
mod dead_letter;

pub(crate) use command::{DeadLettersCommand, dead_letters};
