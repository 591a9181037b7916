//! The brokers, and the place that a contender has on one of them in one round.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use saga_amqp::{AmqpOptions, AmqpTransport};
use saga_core::memory::MemoryTransport;
use saga_core::transport::Transport;
use saga_kafka::{KafkaOptions, KafkaTransport};
use saga_servers::{MotoServer, RabbitMqServer, TansuServer};
use saga_sqs::{SqsOptions, SqsTransport};

/// How many partitions a topic has.
const PARTITIONS: u16 = 12;
/// What the names of topics begin with, but for those of SQS.
const PREFIX: &str = "bench.";

/// A transport, by what carries its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Memory,
    RabbitMq,
    Kafka,
    Sqs,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Memory, Self::RabbitMq, Self::Kafka, Self::Sqs];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "in process",
            Self::RabbitMq => "RabbitMQ",
            Self::Kafka => "Kafka (tansu)",
            Self::Sqs => "SQS (moto, a mock)",
        }
    }
}

/// The brokers that all contenders share.
pub(super) struct Brokers {
    rabbitmq: RabbitMqServer,
    tansu: TansuServer,
    moto: MotoServer,
}

/// Where connections of one contender in one round lead to.
pub(super) enum Place {
    Memory(MemoryTransport),
    RabbitMq(AmqpOptions),
    Kafka(KafkaOptions),
    Sqs(SqsOptions),
}

impl Brokers {
    pub(super) async fn start() -> Result<Self> {
        let rabbitmq = RabbitMqServer::start().await.context("the benchmark needs a RabbitMQ of its own")?;
        let tansu = TansuServer::start_bare().await.context("the benchmark needs a tansu of its own")?;
        Ok(Self { rabbitmq, tansu, moto: MotoServer::start().await.context("the benchmark needs a moto of its own")? })
    }

    /// A new place, on which nothing is.
    pub(super) async fn place(&self, kind: Kind, name: &str) -> Result<Place> {
        Ok(match kind {
            Kind::Memory => Place::Memory(MemoryTransport::new()),
            Kind::RabbitMq => {
                let url = self.rabbitmq.create_vhost(name).await?;
                Place::RabbitMq(AmqpOptions::new(&url).prefix(PREFIX))
            }
            Kind::Kafka => {
                let options = KafkaOptions::new(self.tansu.brokers());
                Place::Kafka(options.prefix(format!("{}.", name.replace('_', "-"))).partitions(PARTITIONS))
            }
            Kind::Sqs => {
                let options = SqsOptions::new("us-east-1").access_key("AKIDEXAMPLE", "secret");
                Place::Sqs(options.endpoint(self.moto.url()).prefix(name.replace('_', "-")))
            }
        })
    }

    /// The broker of Kafka's protocol, for its bare client.
    pub(super) fn kafka(&self) -> String {
        self.tansu.brokers()
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
            Self::Sqs(options) => Arc::new(SqsTransport::connect_with(options.clone()).await?),
        })
    }
}

/// How many partitions a topic of the bare client has: as many as the transport's.
pub(super) const fn partitions() -> i32 {
    PARTITIONS as i32
}
