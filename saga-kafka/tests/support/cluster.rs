use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use saga_kafka::{KafkaOptions, KafkaTransport, Topics};
use tokio::sync::oneshot;

type Mock = MockCluster<'static, DefaultProducerContext>;
type Order = Box<dyn FnOnce(&Mock) + Send>;

/// A cluster of three brokers that exists for as long as this value. The mock cannot be sent to another thread, so a thread owns it.
pub(crate) struct Cluster {
    pub(crate) brokers: String,
    orders: Sender<Order>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let (orders, received) = channel::<Order>();
        let (started, brokers) = channel();
        std::thread::spawn(move || {
            let cluster = Mock::new(3).expect("a mock cluster can be started");
            started.send(cluster.bootstrap_servers()).expect("the test waits");
            while let Ok(order) = received.recv() {
                order(&cluster);
            }
        });
        Self { brokers: brokers.recv().expect("the mock cluster started"), orders }
    }

    /// Does something with the cluster, and waits until it is done.
    pub(crate) async fn order<T: Send + 'static>(&self, order: impl FnOnce(&Mock) -> T + Send + 'static) -> T {
        let (done, outcome) = oneshot::channel();
        self.orders.send(Box::new(move |cluster| _ = done.send(order(cluster)))).expect("the thread is there");
        outcome.await.expect("the order was done")
    }

    pub(crate) async fn create_topic(&self, topic: &str, partitions: i32) {
        let topic = topic.to_owned();
        self.order(move |cluster| cluster.create_topic(&topic, partitions, 1)).await.expect("the topic is new");
    }

    pub(crate) async fn transport(&self, prefix: &str) -> KafkaTransport {
        KafkaTransport::connect_with(options(self, prefix)).await.expect("the cluster can be connected to")
    }
}

/// Short times. The mock has no admin interface, so it creates topics when it is asked for them.
pub(crate) fn options(cluster: &Cluster, prefix: &str) -> KafkaOptions {
    KafkaOptions::new(&cluster.brokers)
        .prefix(prefix)
        .topics(Topics::OnDemand)
        .rejections_max(3)
        .session_timeout(Duration::from_secs(6))
}
