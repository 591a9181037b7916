//! Sagas on a SQLite file at `synchronous=FULL`, beside bare rusqlite doing the same writes.
//!
//! The work is an order saga of three steps, each doing exactly one INSERT in a table of its own.

mod file;
mod floor;
mod portable;
mod run;
mod saga;
mod workload;

pub(crate) use run::{Options, run};
