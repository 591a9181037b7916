//! Show one saga, step by step.

mod command;
mod saga;
mod time;

pub use command::ShowArgs;
pub(crate) use command::show;
pub(crate) use time::{after, utc};
