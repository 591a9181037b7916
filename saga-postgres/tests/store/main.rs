//! The store on the server of the test run.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod admin;
mod batch_steps;
mod ended_session;
mod forgetting;
mod hints;
mod interleavings;
mod lock_mistakes;
mod lookups;
mod migrating;
mod opening;
mod outbox;
mod read_only;
mod semantic_locks;
mod shared_transaction;
mod step_locks;
mod step_transaction;
mod unwritable;
mod without_savepoints;
