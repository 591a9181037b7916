use std::time::Duration;

use anyhow::{Context as _, bail};
use saga_amqp::AmqpTransport;

use super::{broker::Broker, without_password};
use crate::patience::wait_for;

/// Connects to the broker that a URL names. There is none where all messages stay in this process.
///
/// A broker that is away is waited for, for `patience`, and that is said on standard error. One that refuses is not.
pub async fn connect_transport(url: &str, patience: Duration) -> anyhow::Result<Option<Broker>> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    match scheme {
        _ if url == "memory:" => Ok(None),
        Some("amqp") => {
            let connected =
                wait_for("the broker", patience, async || Ok(Broker::Amqp(AmqpTransport::connect(url).await?))).await;
            connected.map(Some).with_context(|| format!("cannot use {}", without_password(url)))
        }
        #[cfg(feature = "sqs")]
        Some("sqs") => {
            let options = sqs::options(url)?;
            let connected = wait_for("SQS", patience, async || {
                Ok(Broker::Sqs(saga_sqs::SqsTransport::connect_with(options.clone()).await?))
            });
            connected.await.map(Some).with_context(|| format!("cannot use {url}"))
        }
        #[cfg(not(feature = "sqs"))]
        Some("sqs") => bail!("this order-rig was built without SQS: build it with the feature sqs"),
        Some(scheme) => bail!("--transport knows memory:, amqp: and sqs:, but not {scheme}:"),
        None => bail!(
            "--transport takes memory: or a URL such as amqp://user:password@host:port/vhost, with host:port,host:port for a cluster, or \
             sqs:PREFIX"
        ),
    }
}

#[cfg(feature = "sqs")]
mod sqs {
    use std::time::Duration;

    use anyhow::{Context as _, bail};
    use saga_sqs::SqsOptions;

    /// The options of `sqs:PREFIX` or `sqs:PREFIX?visibility=SECONDS`. The rest is in the environment.
    pub(super) fn options(url: &str) -> anyhow::Result<SqsOptions> {
        let named = url.trim_start_matches("sqs:").trim_start_matches("//");
        let (prefix, query) = named.split_once('?').unwrap_or((named, ""));
        let options = SqsOptions::from_env().prefix(prefix);
        if query.is_empty() {
            return Ok(options);
        }
        let Some(seconds) = query.strip_prefix("visibility=") else { bail!("{url} has an unknown part: {query}") };
        let seconds = seconds.parse().with_context(|| format!("{url} has no number of seconds: {seconds}"))?;
        Ok(options.visibility(Duration::from_secs(seconds)))
    }
}
