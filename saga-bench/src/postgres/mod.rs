//! Sagas on PostgreSQL, beside what hand-written code reaches on the same server, and beside other runtimes.

mod alone;
mod finished;
mod floor;
mod measure;
mod options;
mod plan;
mod report;
pub(crate) mod retention;
mod run;
mod saga;
pub(crate) mod server;
mod targets;
mod waiting;
mod wire;
mod work;
mod workload;

pub(crate) use floor::pgbench_rate;
pub(crate) use options::Options;
pub(crate) use run::run;
pub(crate) use waiting::{Child, run_child};
