use std::time::Duration;

use anyhow::{Context as _, bail};
use saga_amqp::AmqpTransport;
#[cfg(feature = "kafka")]
use saga_kafka::{KafkaOptions, KafkaTransport};
#[cfg(feature = "sqs")]
use saga_sqs::{SqsOptions, SqsTransport};

use super::{Broker, without_password};
use crate::patience::wait_for;

/// Connects to the broker that a URL names. There is none where all messages stay in this process.
///
/// A broker that is away is waited for, for `patience`, and that is said on standard error. One that refuses is not.
pub async fn connect_transport(url: &str, patience: Duration) -> anyhow::Result<Option<Broker>> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    let connected = match scheme {
        _ if url == "memory:" => return Ok(None),
        Some("amqp") => {
            let connected = wait_for("the broker", patience, async || Ok(AmqpTransport::connect(url).await?)).await;
            connected.map(Broker::Amqp)
        }
        #[cfg(feature = "kafka")]
        Some("kafka" | "kafka+ssl") => {
            let options = KafkaOptions::from_url(url)?;
            let connect = async || Ok(KafkaTransport::connect_with(options.clone()).await?);
            wait_for("the broker", patience, connect).await.map(Broker::Kafka)
        }
        #[cfg(feature = "sqs")]
        Some("sqs") => {
            let options = SqsOptions::from_url(url)?;
            let connect = async || Ok(SqsTransport::connect_with(options.clone()).await?);
            wait_for("SQS", patience, connect).await.map(Broker::Sqs)
        }
        #[cfg(not(feature = "sqs"))]
        Some("sqs") => bail!("this program was built without SQS; build it with `--features sqs`"),
        #[cfg(not(feature = "kafka"))]
        Some("kafka" | "kafka+ssl") => {
            bail!("this program was built without Kafka; build it with `--features kafka`, or `kafka-tls`")
        }
        Some(scheme) => bail!("--transport knows memory:, amqp:, kafka: and sqs:, but not {scheme}:"),
        None => bail!(
            "--transport takes memory: or a URL such as amqp://user:password@host:port/vhost, with host:port,host:port for a cluster"
        ),
    };
    connected.map(Some).with_context(|| format!("cannot use {}", without_password(url)))
}
