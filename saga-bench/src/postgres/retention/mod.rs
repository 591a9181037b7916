//! Purging on PostgreSQL: alone and beside a load, and how large the tables stay.

mod database;
mod run;
mod size;

pub(crate) use run::{Options, run};
