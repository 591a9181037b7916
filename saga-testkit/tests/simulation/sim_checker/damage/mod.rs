//! Ways to damage a sound ledger, each with the guarantee that it breaks.

mod effects;
mod list;
mod messages;
mod pauses;
mod progress;
mod rest;
mod retention;
mod services;
mod signals;
mod starts;
mod tenants;
mod time;
mod tools;
mod undo;

pub(crate) use self::list::ALL;
pub(crate) use self::tools::{calls, plan};
