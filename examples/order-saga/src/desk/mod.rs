//! What people do with orders: with one, and with many.

mod bulk;
mod command;
mod open;
mod stuck;

pub use bulk::bulk;
pub use command::{cancel, pause, resume};
pub(crate) use open::definitions;
pub use stuck::{force, restart, retry, skip};
