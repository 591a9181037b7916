//! Other runtimes doing the order work: the programs of the workspace `bench/peers`, each in a new database.

mod programs;
mod run;

pub(crate) use programs::{Job, Programs};
pub(crate) use run::{Options, run};
