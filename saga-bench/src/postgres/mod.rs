//! Sagas on PostgreSQL, beside pgbench doing the writes of a step with one commit a step.

mod floor;
mod run;
mod saga;
pub(crate) mod server;
mod workload;

pub(crate) use run::{Options, run};
