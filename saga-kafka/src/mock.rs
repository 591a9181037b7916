use std::fmt;
use std::sync::mpsc::{Sender, channel};

use rdkafka::mocking;
use saga_core::transport::{TransportError, TransportErrorKind};

use crate::error::failed;
use crate::options::{KafkaOptions, Topics};

/// A Kafka cluster inside the process, for the tests of services: librdkafka's mock, with one broker. It exists for as long as this value.
///
/// It has topics, consumer groups and offsets, in memory. A group needs some seconds until its first member has its partitions, which
/// only subscriptions of events wait for.
///
/// ```
/// use saga_core::transport::{Subscription, Transport};
/// use saga_kafka::{KafkaTransport, MockCluster};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = MockCluster::start()?;
/// let transport = KafkaTransport::connect_with(cluster.options()).await?;
/// let topics = vec!["service:payments".to_owned()];
/// let incoming = transport.subscribe(Subscription { name: "service:payments".to_owned(), topics, prefetch: 10 }).await?;
/// # drop(incoming);
/// # Ok(())
/// # }
/// ```
pub struct MockCluster {
    brokers: String,
    /// The thread that has the cluster, which cannot be sent to another one, ends when this is dropped.
    #[expect(dead_code, reason = "it is there to be dropped")]
    kept: Sender<()>,
}

impl MockCluster {
    /// Starts a cluster.
    ///
    /// # Errors
    /// If librdkafka cannot start it, such as for want of ports.
    pub fn start() -> Result<Self, TransportError> {
        let (kept, dropped) = channel();
        let (started, brokers) = channel();
        let run = move || {
            let cluster = mocking::MockCluster::new(1);
            let is_there = cluster.is_ok();
            // Who asked for it is waiting.
            _ = started.send(cluster.as_ref().map(mocking::MockCluster::bootstrap_servers).map_err(Clone::clone));
            if is_there {
                _ = dropped.recv();
            }
        };
        let unavailable = |why: String| TransportError::new(TransportErrorKind::Unavailable, "start", why);
        let thread = std::thread::Builder::new().name("saga-kafka mock".to_owned());
        thread.spawn(run).map_err(|error| unavailable(error.to_string()))?;
        let brokers = brokers.recv().map_err(|error| unavailable(error.to_string()))?;
        let brokers = brokers.map_err(|error| failed("start", "start a mock cluster", &error))?;
        Ok(Self { brokers, kept })
    }

    /// The addresses of its brokers.
    pub fn brokers(&self) -> &str {
        &self.brokers
    }

    /// Options of a transport on it. It has no interface to create topics, so it creates them when it is asked for them.
    pub fn options(&self) -> KafkaOptions {
        KafkaOptions::new(&self.brokers).topics(Topics::OnDemand)
    }
}

impl fmt::Debug for MockCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockCluster").field("brokers", &self.brokers).finish_non_exhaustive()
    }
}
