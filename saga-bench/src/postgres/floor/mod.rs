//! The floors: what hand-written code does for a step. Its step key, its business row, its saga's row, and a message for
//! the outbox, each on one connection of its own.

mod one_statement;
mod pgbench;
mod tables;
mod unnest;

pub(super) use one_statement::run as run_one_statement;
pub(crate) use pgbench::rate as pgbench_rate;
pub(super) use pgbench::{run as run_pgbench, run_alone as run_pgbench_alone};
pub(super) use tables::{create, verify};
pub(super) use unnest::run as run_unnest;
