//! Every state of the models, and every mistake that is planted in them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod judged;
mod locking;
mod mutants;
mod over_redis;
mod protocol;
mod purging;
mod reserving;
