//! The suite that every transport is held to, on a broker that keeps a log and creates topics by its admin interface.
#![allow(clippy::expect_used, reason = "a suite fails by panicking")]

mod support;

use saga_servers::TansuServer;
use saga_testkit::transport_main;

use self::support::{Kafka, on_tansu};

fn started() -> Kafka<TansuServer> {
    let server = saga_testkit::block_on(TansuServer::start()).expect("tansu starts");
    let options = on_tansu(&server, "");
    Kafka::on(server, options)
}

transport_main!(started());
