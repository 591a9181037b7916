//! The cluster of the tests: librdkafka's mock, inside the process.
#![allow(dead_code, unused_imports, reason = "no test uses all of it")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
pub(crate) mod messages;

pub(crate) use self::cluster::{Cluster, options};
