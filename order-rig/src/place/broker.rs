use std::time::Duration;

use async_trait::async_trait;
use saga_amqp::AmqpTransport;
use saga_core::transport::{Incoming, Message, Subscription, Transport, TransportError};
#[cfg(feature = "sqs")]
use saga_sqs::SqsTransport;

/// What carries messages between services.
#[derive(Debug, Clone)]
pub enum Broker {
    /// RabbitMQ.
    Amqp(AmqpTransport),
    /// Amazon SQS and SNS.
    #[cfg(feature = "sqs")]
    Sqs(SqsTransport),
}

impl Broker {
    /// Whether what is addressed to this service arrives.
    pub fn receives(&self) -> bool {
        match self {
            Self::Amqp(amqp) => {
                let health = amqp.health();
                health.is_healthy() && !health.subscriptions.is_empty()
            }
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => {
                let health = sqs.health();
                health.is_healthy() && !health.subscriptions.is_empty()
            }
        }
    }

    /// Returns what this process has and did not settle.
    pub async fn close(&self) {
        match self {
            // The broker sees that the connection has ended.
            Self::Amqp(_) => {}
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.close().await,
        }
    }

    fn transport(&self) -> &dyn Transport {
        match self {
            Self::Amqp(amqp) => amqp,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs,
        }
    }
}

#[async_trait]
impl Transport for Broker {
    fn name(&self) -> &'static str {
        self.transport().name()
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        self.transport().publish(messages).await
    }

    fn redelivers_within(&self) -> Option<Duration> {
        self.transport().redelivers_within()
    }

    fn payload_bytes_max(&self) -> Option<usize> {
        self.transport().payload_bytes_max()
    }

    async fn reachable(&self) -> Result<(), TransportError> {
        self.transport().reachable().await
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.transport().subscribe(subscription).await
    }

    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        self.transport().dead_letters(subscription, prefetch).await
    }
}
