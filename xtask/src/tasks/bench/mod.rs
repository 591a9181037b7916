//! `cargo xtask bench`: the benchmarks, each beside its floors, and two revisions beside each other.

mod beside;
mod compared;
mod run;

pub(crate) use run::{Bench, bench};
