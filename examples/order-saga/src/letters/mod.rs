//! Dead letters: messages that could not be handled, and what a person does with them.

mod command;
mod letter;

pub use command::letters;
