//! What holds on every store.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod changed_types;
mod choices;
mod damaged_rows;
mod desk;
mod guarantees;
mod killed_locks;
mod lists;
mod lock_tries;
mod operator;
mod pieces;
mod results;
mod retention;
mod semantic_locks;
mod step_locks;
mod sub_sagas;
mod virtual_time;
mod waiting;
