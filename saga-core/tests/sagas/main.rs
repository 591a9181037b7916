//! Sagas: their keys and starts, composition, time and signals, semantic locks and versions.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod cancel;
mod choices;
mod for_each;
mod groups;
mod keys;
mod mapped_inputs;
mod runtime;
mod semantic_locks;
mod signals;
mod start_in;
mod start_many;
mod sub_sagas;
mod time;
mod versions;
