//! What people do with single orders.

mod command;
mod open;

pub use command::{cancel, pause, resume};
