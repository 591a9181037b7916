//! `cargo xtask test`: every test there is.

mod cargo_test;
mod compiler;
mod lanes;
mod last_lines;
mod programs;
mod report;
mod simulation;
mod task;
mod totals;

pub(crate) use task::{Test, test};
