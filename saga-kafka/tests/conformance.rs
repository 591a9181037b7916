//! The suite that every transport is held to, on librdkafka's mock cluster.
#![allow(clippy::expect_used, reason = "a suite fails by panicking")]

mod support;

use saga_testkit::transport_main;

use self::support::{Cluster, Kafka, options};

fn on_the_mock() -> Kafka<Cluster> {
    let cluster = Cluster::start();
    let options = options(&cluster, "");
    Kafka::on(cluster, options)
}

transport_main!(on_the_mock());
