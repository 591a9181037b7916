//! Real servers that are killed, frozen, emptied, replaced and cut off. Each test starts its own.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod clock;
mod cluster;
mod cuts;
mod epochs;
mod failover;
mod refused;
mod server;
mod shared_calls;
mod support;
