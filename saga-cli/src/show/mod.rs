//! Show one saga, step by step.

mod command;
mod saga;
mod time;

pub(crate) use command::{ShowArgs, show};
pub(crate) use time::{after, utc};
