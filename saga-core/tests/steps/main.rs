//! Steps: how they are executed, retried, batched, limited and locked.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod batch_steps;
mod bulkheads;
mod company;
mod durations;
mod exclusive;
mod failing_transactions;
mod lost_claims;
mod progress;
mod publish_in;
mod resolve;
mod results;
mod run_on;
mod savepoints;
mod settling;
mod shared_commits;
mod step_locks;
mod tried_again;
