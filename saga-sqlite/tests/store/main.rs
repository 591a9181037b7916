//! The store on files of its own: opening, step transactions, group commit, and several processes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod application;
mod commit_count;
mod group_commit;
mod opening;
mod processes;
mod purging;
mod semantic_locks;
mod step_panics;
mod step_transaction;
