//! What an operator does, and what holds while processes come and go.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod access_policy;
mod held_keys;
mod horizons;
mod leases;
mod limits;
mod maintenance;
mod moves;
mod pause;
mod restart;
mod watching;
