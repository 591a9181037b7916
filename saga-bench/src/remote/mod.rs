//! W-remote: sagas whose second step is done by another service, a process of its own with a database of its own, over
//! RabbitMQ; beside the same sagas with all steps in one service.

mod host;
mod run;
mod saga;
mod work;

pub(crate) use host::{HostOptions, host};
pub(crate) use run::{Options, run};
