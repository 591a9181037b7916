//! Requests with an `Idempotency-Key`, on every store.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod child;
mod claim_first;
mod concurrency;
mod cost;
mod doubt;
mod fuzz;
mod in_flight;
mod kills;
mod limits;
mod mistakes;
mod nested;
mod python;
mod rules;
mod sagas;
mod statuses;
mod support;
mod ttl;
