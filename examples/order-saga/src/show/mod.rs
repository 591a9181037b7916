//! Looking at sagas: what happened to one, step by step, and which there are.

mod command;
mod saga;
mod time;

pub use command::{audit, list, show};
pub(crate) use time::moment;
