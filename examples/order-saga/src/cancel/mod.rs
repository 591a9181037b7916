//! Cancelling an order while it is on its way.

mod command;

pub use command::cancel;
