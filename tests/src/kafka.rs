//! Scenarios whose messages Kafka carries: librdkafka's mock cluster, inside the process, one for each scenario.

use std::sync::Arc;

use saga_core::transport::Transport;
use saga_kafka::{KafkaTransport, MockCluster};

tokio::task_local! {
    static ON: ();
}

/// Runs a scenario whose services talk to each other by Kafka.
///
/// # Cancel safety
/// It is the scenario's.
pub async fn on(scenario: impl Future<Output = ()>) {
    ON.scope((), scenario).await;
}

/// Whether this is such a scenario.
pub(crate) fn is_on() -> bool {
    ON.try_with(|()| ()).is_ok()
}

/// A transport on a cluster of its own.
pub(crate) async fn carrier() -> (Arc<dyn Transport>, Box<MockCluster>) {
    let cluster = MockCluster::start().unwrap();
    let transport = KafkaTransport::connect_with(cluster.options()).await.unwrap();
    (Arc::new(transport), Box::new(cluster))
}
