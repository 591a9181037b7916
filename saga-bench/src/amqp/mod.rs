//! The relay from PostgreSQL to RabbitMQ, beside bare lapin with the same window of confirms; and how long one message
//! takes from its commit to its receiver.

mod floor;
mod run;
mod servers;

pub(crate) use run::{Options, run};
