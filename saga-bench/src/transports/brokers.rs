//! The brokers, and the place that a contender has on one of them in one round.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use saga_amqp::{AmqpOptions, AmqpTransport};
use saga_core::memory::MemoryTransport;
use saga_core::transport::Transport;
use saga_kafka::{KafkaOptions, KafkaTransport};
use saga_servers::{RabbitMqServer, TansuServer};

/// How many partitions a topic has, the transport's and the bare client's.
pub(super) const PARTITIONS: u16 = 12;
/// Tansu lets a group wait for half of it, the transport's and the bare client's.
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_secs(6);
/// What the names of topics and queues begin with.
const PREFIX: &str = "bench.";

/// A transport, by what carries its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Memory,
    RabbitMq,
    Kafka,
    KafkaOnS3,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Memory, Self::RabbitMq, Self::Kafka, Self::KafkaOnS3];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "in process",
            Self::RabbitMq => "RabbitMQ",
            Self::Kafka => "Kafka (tansu in memory)",
            Self::KafkaOnS3 => "Kafka (tansu on a mock of S3)",
        }
    }

    /// By what the messages of a round are divided: a mock in Python stores each batch of a broker on S3.
    pub(super) const fn share(self) -> u32 {
        match self {
            Self::KafkaOnS3 => 4,
            Self::Memory | Self::RabbitMq | Self::Kafka => 1,
        }
    }
}

/// The brokers that all contenders share.
pub(super) struct Brokers {
    rabbitmq: RabbitMqServer,
    in_memory: TansuServer,
    on_s3: TansuServer,
}

/// Where connections of one contender in one round lead to.
pub(super) enum Place {
    Memory(MemoryTransport),
    RabbitMq(AmqpOptions),
    Kafka(KafkaOptions),
}

impl Brokers {
    pub(super) async fn start() -> Result<Self> {
        let rabbitmq = RabbitMqServer::start().await.context("the benchmark needs a RabbitMQ of its own")?;
        let in_memory = TansuServer::start_bare().await.context("the benchmark needs a tansu of its own")?;
        Ok(Self { rabbitmq, in_memory, on_s3: TansuServer::start_durable().await? })
    }

    /// A new place, on which nothing is.
    pub(super) async fn place(&self, kind: Kind, name: &str) -> Result<Place> {
        let kafka = |tansu: &TansuServer| {
            let options = KafkaOptions::new(tansu.brokers()).session_timeout(SESSION_TIMEOUT);
            Place::Kafka(options.prefix(format!("{}.", name.replace('_', "-"))).partitions(PARTITIONS))
        };
        Ok(match kind {
            Kind::Memory => Place::Memory(MemoryTransport::new()),
            Kind::RabbitMq => {
                let url = self.rabbitmq.create_vhost(name).await?;
                Place::RabbitMq(AmqpOptions::new(&url).prefix(PREFIX))
            }
            Kind::Kafka => kafka(&self.in_memory),
            Kind::KafkaOnS3 => kafka(&self.on_s3),
        })
    }

    /// The broker of Kafka's protocol, for its bare client; none where the messages take another way.
    pub(super) fn kafka(&self, kind: Kind) -> Option<String> {
        match kind {
            Kind::Memory | Kind::RabbitMq => None,
            Kind::Kafka => Some(self.in_memory.brokers()),
            Kind::KafkaOnS3 => Some(self.on_s3.brokers()),
        }
    }
}

impl Place {
    /// Whether a message counts as sent when its receiver has accepted it, so that none can lie there.
    pub(super) const fn sends_when_accepted(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    /// A connection, as another process has one.
    pub(super) async fn connect(&self) -> Result<Arc<dyn Transport>> {
        Ok(match self {
            Self::Memory(transport) => Arc::new(transport.clone()),
            Self::RabbitMq(options) => Arc::new(AmqpTransport::connect_with(options.clone()).await?),
            Self::Kafka(options) => Arc::new(KafkaTransport::connect_with(options.clone()).await?),
        })
    }
}
