//! Queues, topics and subscriptions: finding them, and making those that are missing.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName as Attribute;
use saga_core::transport::{TransportError, TransportErrorKind};
use serde_json::json;
use tokio::time::Instant;

use crate::clients::Clients;
use crate::error::{Cause, Failure};
use crate::names::Names;
use crate::options::{Declare, SqsOptions};
use crate::wire::MESSAGE_BYTES_MAX;
use saga_core::__private::log;

/// For how long a topic that is gone is left to its receivers: they make it again together with their subscriptions, without which
/// its events would be lost. They look every minute.
const LEFT_TO_RECEIVERS: Duration = Duration::from_secs(90);

/// The queues and topics of a prefix, as far as this process knows them.
pub(crate) struct Topology {
    pub(crate) clients: Clients,
    pub(crate) options: SqsOptions,
    pub(crate) names: Names,
    /// The addresses of queues that are sent to, by their names.
    queues: Mutex<BTreeMap<String, String>>,
    topics: Mutex<BTreeMap<String, Known>>,
}

/// What is known of an SNS topic.
#[derive(Debug, Clone)]
enum Known {
    There(String),
    GoneSince(Instant),
}

/// What a subscription needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) queue: String,
    /// The queue of its dead letters; none where it is such a queue itself.
    pub(crate) dead_letters: Option<String>,
    /// The SNS topics whose messages it gets.
    pub(crate) topics: Vec<String>,
}

/// A queue that is there.
struct Queue {
    url: String,
    arn: String,
    has_policy: bool,
}

impl Topology {
    pub(crate) fn new(clients: Clients, options: SqsOptions, names: Names) -> Self {
        Self { clients, options, names, queues: Mutex::default(), topics: Mutex::default() }
    }

    /// The address of a queue that is sent to, if it is there.
    pub(crate) async fn queue(&self, name: &str) -> Result<Option<String>, Failure> {
        let known = lock(&self.queues).get(name).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let found = self.find_queue(name).await?;
        if let Some(url) = &found {
            lock(&self.queues).insert(name.to_owned(), url.clone());
        }
        Ok(found)
    }

    pub(crate) fn forget_queue(&self, name: &str) {
        lock(&self.queues).remove(name);
    }

    /// The address of a topic that is sent to, if it is there. That of an event is made, since it may have no receivers.
    pub(crate) async fn topic(&self, name: &str, is_addressed: bool) -> Result<Option<String>, Failure> {
        let known = lock(&self.topics).get(name).cloned();
        let gone_since = match known {
            Some(Known::There(arn)) => return Ok(Some(arn)),
            Some(Known::GoneSince(since)) => Some(since),
            None => None,
        };
        let is_left = gone_since.is_some_and(|since| since.elapsed() < LEFT_TO_RECEIVERS);
        if is_left || is_addressed || self.options.declare == Declare::Nothing {
            let found = self.find_topic(name).await?;
            if let Some(arn) = &found {
                self.note_topic(name, arn);
            }
            return Ok(found);
        }
        self.make_topic(name).await.map(Some)
    }

    /// A topic that was there is not there any more.
    pub(crate) fn topic_is_gone(&self, name: &str) {
        lock(&self.topics).insert(name.to_owned(), Known::GoneSince(Instant::now()));
    }

    /// Makes sure that all is there that a subscription needs, and answers the address of its queue.
    pub(crate) async fn require(&self, needs: &Needs) -> Result<String, TransportError> {
        let failed = |doing: String| move |failure: Failure| failure.error("subscribe", &doing);
        if self.options.declare == Declare::Nothing {
            let found =
                self.find_queue(&needs.queue).await.map_err(failed(format!("find the queue {}", needs.queue)))?;
            return found.ok_or_else(|| missing("subscribe", "queue", &needs.queue));
        }
        let mut redrive = None;
        if let Some(dead_letters) = &needs.dead_letters {
            let made = self.require_queue(dead_letters, None).await;
            redrive = Some(made.map_err(failed(format!("make the queue {dead_letters}")))?.arn);
        }
        let queue = self.require_queue(&needs.queue, redrive.as_deref()).await;
        let queue = queue.map_err(failed(format!("make the queue {}", needs.queue)))?;
        for topic in &needs.topics {
            let doing = format!("subscribe the queue {} to the topic {topic}", needs.queue);
            self.subscribe(&queue, topic).await.map_err(failed(doing))?;
        }
        Ok(queue.url)
    }

    /// How many messages are in a queue.
    pub(crate) async fn depth(&self, url: &str) -> Result<u64, Failure> {
        let counts = [Attribute::ApproximateNumberOfMessages, Attribute::ApproximateNumberOfMessagesNotVisible];
        let asked = self.clients.sqs.get_queue_attributes().queue_url(url).set_attribute_names(Some(counts.to_vec()));
        let found = asked.send().await.map_err(|error| Failure::of(&error))?;
        let found = found.attributes.unwrap_or_default();
        Ok(counts.iter().filter_map(|count| found.get(count)?.parse::<u64>().ok()).sum())
    }

    /// One request that changes nothing: whether SQS answers.
    pub(crate) async fn probe(&self) -> Result<(), Failure> {
        let asked = self.clients.sqs.list_queues().queue_name_prefix(self.names.prefix()).max_results(1);
        asked.send().await.map(drop).map_err(|error| Failure::of(&error))
    }

    /// One request that changes nothing: whether SNS answers.
    pub(crate) async fn probe_sns(&self) -> Result<(), Failure> {
        self.clients.sns.list_topics().send().await.map(drop).map_err(|error| Failure::of(&error))
    }

    async fn find_queue(&self, name: &str) -> Result<Option<String>, Failure> {
        match self.clients.sqs.get_queue_url().queue_name(name).send().await {
            Ok(found) => Ok(found.queue_url),
            Err(error) => match Failure::of(&error) {
                failure if failure.cause == Cause::NotFound => Ok(None),
                failure => Err(failure),
            },
        }
    }

    async fn require_queue(&self, name: &str, redrive: Option<&str>) -> Result<Queue, Failure> {
        let url = match self.find_queue(name).await? {
            Some(url) => url,
            None => self.make_queue(name, redrive).await?,
        };
        let asked = self.clients.sqs.get_queue_attributes().queue_url(&url);
        let asked = asked.attribute_names(Attribute::QueueArn).attribute_names(Attribute::Policy);
        let found = asked.send().await.map_err(|error| Failure::of(&error))?.attributes.unwrap_or_default();
        let arn = found.get(&Attribute::QueueArn).cloned().unwrap_or_default();
        Ok(Queue { url, arn, has_policy: found.get(&Attribute::Policy).is_some_and(|policy| !policy.is_empty()) })
    }

    async fn make_queue(&self, name: &str, redrive: Option<&str>) -> Result<String, Failure> {
        let SqsOptions { visibility, retention, wait_time, .. } = &self.options;
        let mut attributes = HashMap::from([
            (Attribute::FifoQueue, "true".to_owned()),
            // High throughput, and each group on its own.
            (Attribute::DeduplicationScope, "messageGroup".to_owned()),
            (Attribute::FifoThroughputLimit, "perMessageGroupId".to_owned()),
            (Attribute::VisibilityTimeout, visibility.as_secs().to_string()),
            (Attribute::MessageRetentionPeriod, retention.as_secs().to_string()),
            (Attribute::MaximumMessageSize, MESSAGE_BYTES_MAX.to_string()),
            (Attribute::ReceiveMessageWaitTimeSeconds, wait_time.as_secs().to_string()),
        ]);
        if let Some(arn) = redrive {
            let policy = json!({ "deadLetterTargetArn": arn, "maxReceiveCount": self.options.receives_max() });
            attributes.insert(Attribute::RedrivePolicy, policy.to_string());
        }
        let asked = self.clients.sqs.create_queue().queue_name(name).set_attributes(Some(attributes));
        let made = asked.send().await.map_err(|error| Failure::of(&error));
        match made {
            Ok(made) => {
                log::info!(queue = name, "queue made");
                Ok(made.queue_url.unwrap_or_default())
            }
            // Another process, with other options, was faster.
            Err(failure) => self.find_queue(name).await?.ok_or(failure),
        }
    }

    async fn make_topic(&self, name: &str) -> Result<String, Failure> {
        let asked = self.clients.sns.create_topic().name(name);
        let asked = asked.attributes("FifoTopic", "true").attributes("ContentBasedDeduplication", "false");
        let asked = asked.attributes("FifoThroughputScope", "MessageGroup");
        let asked = asked.attributes("MaximumMessageSize", MESSAGE_BYTES_MAX.to_string());
        let arn = match asked.send().await.map_err(|error| Failure::of(&error)) {
            Ok(made) => made.topic_arn.unwrap_or_default(),
            // One of this name may be there, with other attributes, or made by a user who may.
            Err(failure) if matches!(failure.cause, Cause::Invalid | Cause::NotAllowed) => {
                self.find_topic(name).await?.ok_or(failure)?
            }
            Err(failure) => return Err(failure),
        };
        self.note_topic(name, &arn);
        Ok(arn)
    }

    /// Looks through all topics: SNS knows no other way to ask for one by its name.
    async fn find_topic(&self, name: &str) -> Result<Option<String>, Failure> {
        let mut next = None;
        loop {
            let asked = self.clients.sns.list_topics().set_next_token(next);
            let page = asked.send().await.map_err(|error| Failure::of(&error))?;
            let arns = page.topics.unwrap_or_default().into_iter().filter_map(|topic| topic.topic_arn);
            let found = arns.into_iter().find(|arn| arn.rsplit(':').next() == Some(name));
            if found.is_some() || page.next_token.is_none() {
                return Ok(found);
            }
            next = page.next_token;
        }
    }

    fn note_topic(&self, name: &str, arn: &str) {
        lock(&self.topics).insert(name.to_owned(), Known::There(arn.to_owned()));
    }

    /// Subscribes a queue to a topic, which is made if it is not there. Where the subscription is there, this changes nothing.
    async fn subscribe(&self, queue: &Queue, topic: &str) -> Result<(), Failure> {
        let known = lock(&self.topics).get(topic).cloned();
        if let Some(Known::There(arn)) = known {
            match self.subscribe_to(queue, &arn).await {
                Err(failure) if failure.cause == Cause::NotFound => {}
                subscribed => return subscribed,
            }
        }
        let arn = self.make_topic(topic).await?;
        self.subscribe_to(queue, &arn).await
    }

    async fn subscribe_to(&self, queue: &Queue, topic_arn: &str) -> Result<(), Failure> {
        if !queue.has_policy {
            self.let_topics_send(queue, topic_arn).await?;
        }
        let asked = self.clients.sns.subscribe().topic_arn(topic_arn).protocol("sqs").endpoint(&queue.arn);
        let asked = asked.attributes("RawMessageDelivery", "true").return_subscription_arn(true);
        asked.send().await.map(drop).map_err(|error| Failure::of(&error))
    }

    /// Lets the topics of this prefix and this account send to the queue. A policy that is there was written by an operator, and stays.
    async fn let_topics_send(&self, queue: &Queue, topic_arn: &str) -> Result<(), Failure> {
        let account = topic_arn.rsplit_once(':').map_or(topic_arn, |(account, _)| account);
        let policy = json!({
            "Version": "2012-10-17",
            "Statement": [{
                "Effect": "Allow",
                "Principal": { "Service": "sns.amazonaws.com" },
                "Action": "sqs:SendMessage",
                "Resource": queue.arn,
                "Condition": { "ArnLike": { "aws:SourceArn": format!("{account}:{}*", self.names.prefix()) } },
            }],
        });
        let asked = self.clients.sqs.set_queue_attributes().queue_url(&queue.url);
        let asked = asked.attributes(Attribute::Policy, policy.to_string());
        asked.send().await.map(drop).map_err(|error| Failure::of(&error))
    }
}

/// A queue or a topic that has to be there, and is not.
pub(crate) fn missing(operation: &'static str, what: &str, name: &str) -> TransportError {
    let detail = format!(
        "there is no {what} {name:?}; start the service that receives from it, create it, or let the transport make it with \
         `Declare::Missing`"
    );
    TransportError::new(TransportErrorKind::NoRoute, operation, detail)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
