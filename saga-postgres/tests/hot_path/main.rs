//! What the hot path costs, in counters and not in time: durable commits, statements, round trips and WAL records for
//! batches of 1, 16 and 50 steps, and for whole sagas through the runtime. These fail when the hot path gets heavier, and
//! each shows that it can fail.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod batches;
mod cost;
mod held;
mod locked;
mod meter;
mod sagas;
mod tenants;
