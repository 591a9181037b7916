//! `cargo xtask demo services`: the order saga as three services, on private servers.

mod broker;
mod services;
mod started;

pub(crate) use self::services::{Demo, demo};
