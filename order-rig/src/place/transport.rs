use std::time::Duration;

use anyhow::{Context as _, bail};
use saga_amqp::AmqpTransport;

use super::without_password;
use crate::patience::wait_for;

/// Connects to the broker that a URL names. There is none where all messages stay in this process.
///
/// A broker that is away is waited for, for `patience`, and that is said on standard error. One that refuses is not.
pub async fn connect_transport(url: &str, patience: Duration) -> anyhow::Result<Option<AmqpTransport>> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    match scheme {
        _ if url == "memory:" => Ok(None),
        Some("amqp") => {
            let connected = wait_for("the broker", patience, async || Ok(AmqpTransport::connect(url).await?)).await;
            connected.map(Some).with_context(|| format!("cannot use {}", without_password(url)))
        }
        Some(scheme) => bail!("--transport knows memory: and amqp:, but not {scheme}:"),
        None => bail!(
            "--transport takes memory: or a URL such as amqp://user:password@host:port/vhost, with host:port,host:port for a cluster"
        ),
    }
}
