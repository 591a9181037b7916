//! The order saga across services: each a process with a database of its own, and a broker between them.

mod command;
mod host;
mod log;
mod orders;
mod serve;

pub use command::service;
pub(crate) use log::log_to_stderr;
