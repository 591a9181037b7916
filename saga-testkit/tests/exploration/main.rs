//! Every order of the moves of few actors, on the memory store.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod explore_attempts;
mod explore_batch;
mod explore_calls;
mod explore_commits;
mod explore_events;
mod explore_memory;
mod explore_moves;
mod explore_restarts;
mod explore_services;
