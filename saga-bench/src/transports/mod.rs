//! The same messages over each transport, and over Kafka by its bare client.

mod bare_kafka;
mod brokers;
mod receiving;
mod run;

pub(crate) use self::run::{Options, run};
