//! The brokers of the tests: librdkafka's mock cluster inside the process, and tansu.
#![allow(dead_code, unused_imports, reason = "no test uses all of it")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
mod harness;
mod tansu;
mod tls_proxy;

pub(crate) use self::cluster::{Cluster, options};
pub(crate) use self::harness::Kafka;
pub(crate) use self::tansu::{Place, on_tansu};
pub(crate) use self::tls_proxy::TlsBroker;
pub(crate) use saga_testkit::messages;
