//! The same messages over each transport, and over Kafka by its bare client.

mod bare_kafka;
mod brokers;
mod measured;
mod receiving;
mod requests;
mod run;

pub(crate) use self::run::{Options, run};
