//! Brokers of the tests' own, which they kill, freeze and starve.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod node;
