//! The transport on moto: what others send and delete, and what a message costs.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod faults;
mod load;
mod strangers;
