use std::sync::Arc;

use saga_amqp::AmqpTransport;
use saga_core::transport::Transport;
#[cfg(feature = "kafka")]
use saga_kafka::KafkaTransport;
#[cfg(feature = "sqs")]
use saga_sqs::SqsTransport;

/// The broker between the services. A clone is a handle on the same connections.
#[derive(Clone, Debug)]
pub enum Broker {
    /// RabbitMQ.
    Amqp(AmqpTransport),
    /// Kafka.
    #[cfg(feature = "kafka")]
    Kafka(KafkaTransport),
    /// Amazon SQS and SNS.
    #[cfg(feature = "sqs")]
    Sqs(SqsTransport),
}

impl Broker {
    /// The transport of a runtime.
    pub fn transport(&self) -> Arc<dyn Transport> {
        match self {
            Self::Amqp(amqp) => Arc::new(amqp.clone()),
            #[cfg(feature = "kafka")]
            Self::Kafka(kafka) => Arc::new(kafka.clone()),
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => Arc::new(sqs.clone()),
        }
    }

    /// Whether what is addressed to this process arrives.
    pub fn receives(&self) -> bool {
        match self {
            Self::Amqp(amqp) => {
                let health = amqp.health();
                health.is_healthy() && !health.subscriptions.is_empty()
            }
            #[cfg(feature = "kafka")]
            Self::Kafka(kafka) => {
                let health = kafka.health();
                health.is_healthy() && !health.subscriptions.is_empty()
            }
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => {
                let health = sqs.health();
                health.is_healthy() && !health.subscriptions.is_empty()
            }
        }
    }

    /// Tells the broker that this process is gone, where it would be missed only after a while.
    pub async fn close(&self) {
        match self {
            // The broker sees that the connection has ended.
            Self::Amqp(_) => {}
            #[cfg(feature = "kafka")]
            Self::Kafka(kafka) => kafka.close().await,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.close().await,
        }
    }
}
