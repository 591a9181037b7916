//! Semantic locks of sagas: turns, limits, deadlocks, early ends, and what an operator does.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod definitions;
mod ends;
mod outages;
mod support;
mod turns;
