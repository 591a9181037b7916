//! `cargo xtask test`: every test there is.

mod failures;
mod lanes;
mod programs;
mod task;
mod totals;

pub(crate) use task::test;
