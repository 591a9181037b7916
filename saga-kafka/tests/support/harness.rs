use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use saga_core::transport::Transport as _;
use saga_kafka::{KafkaOptions, KafkaTransport};
use saga_testkit::TransportHarness;

use saga_testkit::messages::receive;

/// How often a rejected message comes again: so few that the suite need not reject 20 times.
const REJECTIONS_MAX: u32 = 3;

/// Transports on one broker, which ends with this value. Each has topics and groups of its own.
pub(crate) struct Kafka<B> {
    _broker: B,
    options: KafkaOptions,
    transports: AtomicU32,
}

impl<B> Kafka<B> {
    pub(crate) fn on(broker: B, options: KafkaOptions) -> Self {
        Self { _broker: broker, options: options.rejections_max(REJECTIONS_MAX), transports: AtomicU32::new(0) }
    }
}

impl<B: Send + Sync + 'static> TransportHarness for Kafka<B> {
    type Transport = KafkaTransport;

    async fn fresh(&self) -> KafkaTransport {
        let number = self.transports.fetch_add(1, Ordering::Relaxed);
        let options = self.options.clone().prefix(format!("t{number}."));
        KafkaTransport::connect_with(options).await.expect("the cluster can be connected to")
    }

    async fn beside(&self, transport: &KafkaTransport) -> KafkaTransport {
        KafkaTransport::connect_with(transport.options().clone()).await.expect("the cluster can be connected to")
    }

    fn rejections_max(&self) -> u32 {
        REJECTIONS_MAX
    }

    async fn given_up(&self, transport: &KafkaTransport) -> Option<Vec<Vec<u8>>> {
        let mut dead = transport.dead_letters("a", 10).await.expect("dead letters can be received")?;
        let letters = receive(&mut dead, 1).await;
        Some(letters.into_iter().filter_map(|letter| Some(letter.message.ok()?.payload)).collect())
    }

    fn arrival(&self) -> Duration {
        // A rebalance takes three to five seconds, and more beside other programs.
        Duration::from_mins(1)
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(400)
    }
}
