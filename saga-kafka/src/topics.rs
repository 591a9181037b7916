//! Which topics there are, and how missing ones are created. All calls but `create` block.

use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{Client, ClientContext, DefaultClientContext};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use saga_core::transport::{TransportError, TransportErrorKind};
use tokio::sync::oneshot;

use crate::config;
use crate::error::{failed, is_unknown_topic};
use crate::options::{KafkaOptions, Topics};

/// How long between two looks whether a topic is there that was just created.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How many partitions a topic has; nothing where there is no such topic.
pub(crate) fn partitions<C: ClientContext>(
    client: &Client<C>,
    topic: &str,
    timeout: Duration,
) -> KafkaResult<Option<i32>> {
    let metadata = client.fetch_metadata(Some(topic), timeout)?;
    let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else { return Ok(None) };
    if let Some(error) = found.error() {
        let code = RDKafkaErrorCode::from(error);
        // A topic that is being created has no leaders yet.
        if is_unknown_topic(code) || code == RDKafkaErrorCode::LeaderNotAvailable {
            return Ok(None);
        }
        return Err(KafkaError::MetadataFetch(code));
    }
    let count = i32::try_from(found.partitions().len()).unwrap_or(i32::MAX);
    Ok((count > 0).then_some(count))
}

/// Creates a topic that is not there, as the options say, and waits until it is.
///
/// # Errors
/// One sentence, if it may not be created, or cannot be.
pub(crate) async fn create(options: &KafkaOptions, topic: &str, partitions: i32) -> Result<i32, TransportError> {
    match options.topics {
        Topics::Check => return Err(missing(topic)),
        Topics::OnDemand => {}
        Topics::Create => create_by_admin(options, topic, partitions).await?,
    }
    let (options, topic) = (options.clone(), topic.to_owned());
    let (found, answer) = oneshot::channel();
    tokio::task::spawn_blocking(move || {
        let outcome = wait_for(&options, &topic, &found);
        // A caller that is gone needs no answer.
        _ = found.send(outcome);
    });
    let ended = || TransportError::new(TransportErrorKind::Unavailable, "connect", "shutting down");
    answer.await.unwrap_or_else(|_| Err(ended()))
}

/// A topic that has to be there, and is not.
pub(crate) fn missing(topic: &str) -> TransportError {
    let detail = format!(
        "there is no topic {topic:?}; create it, start the service that receives from it, or let the transport create topics with \
         `Topics::Create`"
    );
    TransportError::new(TransportErrorKind::NoRoute, "connect", detail)
}

/// A topic that no message can be sent to yet, although the cluster answers.
pub(crate) fn not_ready(topic: &str, limit: Duration) -> TransportError {
    let detail = format!(
        "the topic {topic:?} was not ready within {limit:?}; look at the brokers that keep it: a partition may have no leader"
    );
    TransportError::new(TransportErrorKind::Nacked, "connect", detail)
}

async fn create_by_admin(options: &KafkaOptions, topic: &str, partitions: i32) -> Result<(), TransportError> {
    let doing = format!("create the topic {topic}");
    let admin: AdminClient<DefaultClientContext> =
        config::admin(options).create().map_err(|error| failed("connect", &doing, &error))?;
    let new = [NewTopic::new(topic, partitions, TopicReplication::Fixed(options.replication_factor))];
    let limits = AdminOptions::new()
        .request_timeout(Some(options.connect_timeout))
        .operation_timeout(Some(options.connect_timeout));
    let created = admin.create_topics(&new, &limits).await.map_err(|error| failed("connect", &doing, &error))?;
    for result in created {
        match result {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((_, code)) => return Err(failed("connect", &doing, &KafkaError::AdminOp(code))),
        }
    }
    Ok(())
}

/// Looks until the topic is there, or its caller is gone. Where the broker is set so, looking creates it.
fn wait_for(
    options: &KafkaOptions,
    topic: &str,
    caller: &oneshot::Sender<Result<i32, TransportError>>,
) -> Result<i32, TransportError> {
    let doing = format!("find the topic {topic}");
    let config = if options.topics == Topics::OnDemand { config::maker(options) } else { config::admin(options) };
    let client: BaseConsumer = config.create().map_err(|error| failed("connect", &doing, &error))?;
    let began = tokio::time::Instant::now();
    loop {
        if caller.is_closed() {
            return Err(missing(topic));
        }
        match partitions(client.client(), topic, options.connect_timeout) {
            Ok(Some(count)) => return Ok(count),
            Ok(None) if began.elapsed() < options.connect_timeout => std::thread::sleep(LOOK_EVERY),
            Ok(None) if options.topics == Topics::OnDemand => return Err(missing(topic)),
            Ok(None) => return Err(not_ready(topic, options.connect_timeout)),
            Err(error) => return Err(failed("connect", &doing, &error)),
        }
    }
}
