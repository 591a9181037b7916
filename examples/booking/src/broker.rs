//! What carries the messages when the orchestrator is a process of its own.

use std::fmt;
use std::sync::Arc;

use saga_core::transport::Transport;

/// A connection to a broker, and what another process needs to connect to it.
pub struct Broker {
    pub transport: Arc<dyn Transport>,
    pub address: Address,
}

/// Where a broker is.
#[derive(Clone, Default)]
pub struct Address {
    /// `amqp://..` or `sqs:PREFIX`.
    pub url: String,
    /// What the environment of a process says of it, beside that of this one.
    pub environment: Vec<(&'static str, String)>,
}

impl Broker {
    /// Connects to the RabbitMQ broker at `amqp://..`, or to the queues and topics `sqs:PREFIX` of Amazon SQS and SNS, whose region,
    /// credentials and endpoint are in the environment.
    pub async fn connect(url: &str) -> anyhow::Result<Self> {
        let transport = if url.starts_with("sqs:") { sqs(url).await? } else { amqp(url).await? };
        Ok(Self { transport, address: Address { url: url.to_owned(), environment: Vec::new() } })
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Shows the scheme only, since the rest of the address may have a password.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.url.split_once(':').map_or("", |(scheme, _)| scheme);
        f.debug_struct("Address").field("scheme", &scheme).finish_non_exhaustive()
    }
}

#[cfg(feature = "rabbitmq")]
async fn amqp(url: &str) -> anyhow::Result<Arc<dyn Transport>> {
    Ok(Arc::new(saga_amqp::AmqpTransport::connect(url).await?))
}

#[cfg(not(feature = "rabbitmq"))]
async fn amqp(_: &str) -> anyhow::Result<Arc<dyn Transport>> {
    anyhow::bail!(
        "--broker: this program was built for sqs:PREFIX only; build it for RabbitMQ with `cargo run -p booking --features rabbitmq -- ..`"
    )
}

#[cfg(feature = "sqs")]
async fn sqs(url: &str) -> anyhow::Result<Arc<dyn Transport>> {
    let options = saga_sqs::SqsOptions::from_url(url)?;
    Ok(Arc::new(saga_sqs::SqsTransport::connect_with(options).await?))
}

#[cfg(not(feature = "sqs"))]
async fn sqs(_: &str) -> anyhow::Result<Arc<dyn Transport>> {
    anyhow::bail!(
        "--broker: this program was built without SQS; build it with `cargo run -p booking --features sqs -- ..`"
    )
}
