//! Servers of the tests' own, which they kill, restart and fail over; and connections that are looked at closely.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod cdc;
mod connections;
mod failover;
mod online_migration;
mod outage;
mod restarts;
