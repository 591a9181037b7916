//! The outbox: what waits to be sent, and what a person does with what cannot be.

mod command;

pub use command::outbox;
