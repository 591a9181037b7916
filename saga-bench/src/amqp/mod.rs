//! The relay from PostgreSQL to RabbitMQ, beside bare lapin with the same window of confirms; and how long one message
//! takes from its commit to its receiver.

mod counting;
mod floor;
mod outbox;
mod receipt;
mod relay;
mod run;
mod servers;

pub(crate) use run::{Options, run};
