//! The order saga as a test rig, which the kill tests, the outage tests, `saga-chaos` and `cargo xtask demo services` run.
//!
//! To copy an example, take `examples/order-saga`. The rig has the same five steps, written once for every database
//! ([`saga_sql::SqlConn`]) and hosted by services. Around them it has what tests need: orders from files, external services that
//! decline, are slow and fail ([`outside`]), an audit ([`verify`]), and a command line.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod admin;
pub mod archive;
pub mod cli;
pub mod contracts;
mod interrupt;
pub mod orders;
pub mod outside;
mod patience;
pub mod place;
pub mod print;
pub mod run;
pub mod saga;
pub mod sentence;
pub mod service;
pub mod shop;
pub mod steps;
pub mod verify;
