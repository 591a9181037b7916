use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use saga_kafka::{KafkaOptions, KafkaTransport};
use saga_servers::TansuServer;
use tokio::sync::OnceCell;

/// It ends with the program.
static SERVER: OnceCell<TansuServer> = OnceCell::const_new();
static PLACES: AtomicU32 = AtomicU32::new(0);

/// Topics and groups of one test, on the broker that the tests of a program share.
pub(crate) struct Place(KafkaOptions);

impl Place {
    pub(crate) async fn new() -> Self {
        let server = SERVER.get_or_init(async || TansuServer::start().await.expect("tansu starts")).await;
        Self(on_tansu(server, &format!("p{}.", PLACES.fetch_add(1, Ordering::Relaxed))))
    }

    pub(crate) async fn transport(&self) -> KafkaTransport {
        KafkaTransport::connect_with(self.0.clone()).await.expect("the broker can be connected to")
    }
}

/// Topics are created as by default, with partitions so few that a group soon has a place in each.
pub(crate) fn on_tansu(server: &TansuServer, prefix: &str) -> KafkaOptions {
    let options = KafkaOptions::new(server.brokers()).prefix(prefix).partitions(4).rejections_max(3);
    options.session_timeout(Duration::from_secs(6))
}
