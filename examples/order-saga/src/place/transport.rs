use anyhow::{anyhow, bail};
use saga_amqp::AmqpTransport;

use super::without_password;

/// Connects to the broker that a URL names. There is none where all messages stay in this process.
///
/// # Errors
///
/// A sentence that names the transports there are, or says why the broker cannot be used.
///
/// # Cancel safety
///
/// Dropped, nothing stays open.
pub async fn connect_transport(url: &str) -> anyhow::Result<Option<AmqpTransport>> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    match scheme {
        _ if url == "memory:" => Ok(None),
        Some("amqp") => {
            let connected = AmqpTransport::connect(url).await;
            // The transport says all of it in one sentence; what caused it would say it again.
            connected.map(Some).map_err(|error| anyhow!("cannot use {}: {error}", without_password(url)))
        }
        Some(scheme) => bail!("--transport knows memory: and amqp:, but not {scheme}:"),
        None => bail!("--transport takes memory: or a URL such as amqp://user:password@host:port/vhost"),
    }
}
