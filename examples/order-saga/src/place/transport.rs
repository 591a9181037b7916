use std::time::Duration;

use anyhow::{anyhow, bail};
use saga_amqp::AmqpTransport;
use saga_core::transport::{TransportError, TransportErrorKind};

use super::without_password;

/// How long between two looks for a broker that is away.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Connects to the broker that a URL names. There is none where all messages stay in this process.
///
/// A broker that is away is waited for, for `patience`, and that is said on standard error. One that refuses is not.
///
/// # Errors
///
/// A sentence that names the transports there are, or says why the broker cannot be used.
///
/// # Cancel safety
///
/// Dropped, nothing stays open.
pub async fn connect_transport(url: &str, patience: Duration) -> anyhow::Result<Option<AmqpTransport>> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    match scheme {
        _ if url == "memory:" => Ok(None),
        Some("amqp") => {
            let connected = connect_within(url, patience).await;
            // The transport says all of it in one sentence; what caused it would say it again.
            connected.map(Some).map_err(|error| anyhow!("cannot use {}: {error}", without_password(url)))
        }
        Some(scheme) => bail!("--transport knows memory: and amqp:, but not {scheme}:"),
        None => bail!("--transport takes memory: or a URL such as amqp://user:password@host:port/vhost"),
    }
}

async fn connect_within(url: &str, patience: Duration) -> Result<AmqpTransport, TransportError> {
    let mut problem = match AmqpTransport::connect(url).await {
        Err(error) if error.kind() == TransportErrorKind::Unavailable && !patience.is_zero() => error,
        ended => return ended,
    };
    eprintln!("waiting up to {patience:?} for the broker: {problem}");
    let waiting = async {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            match AmqpTransport::connect(url).await {
                Err(error) if error.kind() == TransportErrorKind::Unavailable => problem = error,
                ended => return ended,
            }
        }
    };
    let connected = tokio::time::timeout(patience, waiting).await;
    connected.unwrap_or(Err(problem))
}
