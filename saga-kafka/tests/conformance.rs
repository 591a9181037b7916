//! The suite that every transport is held to, on librdkafka's mock cluster: each check has topics and groups of its own.
#![allow(clippy::expect_used, reason = "a suite fails by panicking")]

mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use saga_kafka::KafkaTransport;
use saga_testkit::{TransportHarness, transport_main};

use self::support::Cluster;
use self::support::messages::receive;

/// How often a rejected message comes again: so few that the suite need not reject 20 times.
const REJECTIONS_MAX: u32 = 3;

struct Kafka {
    cluster: Cluster,
    transports: AtomicU32,
}

impl TransportHarness for Kafka {
    type Transport = KafkaTransport;

    async fn fresh(&self) -> KafkaTransport {
        let number = self.transports.fetch_add(1, Ordering::Relaxed);
        self.cluster.transport(&format!("t{number}.")).await
    }

    async fn beside(&self, transport: &KafkaTransport) -> KafkaTransport {
        KafkaTransport::connect_with(transport.options().clone()).await.expect("the cluster can be connected to")
    }

    fn rejections_max(&self) -> u32 {
        REJECTIONS_MAX
    }

    async fn given_up(&self, transport: &KafkaTransport) -> Option<Vec<Vec<u8>>> {
        use saga_core::transport::Transport as _;
        let mut dead = transport.dead_letters("a", 10).await.expect("dead letters can be received")?;
        let letters = receive(&mut dead, 1).await;
        Some(letters.into_iter().filter_map(|letter| Some(letter.message.ok()?.payload)).collect())
    }

    fn arrival(&self) -> Duration {
        // The mock takes five seconds for each phase of a rebalance, and more beside other programs.
        Duration::from_mins(1)
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(400)
    }
}

transport_main!(Kafka { cluster: Cluster::start(), transports: AtomicU32::new(0) });
