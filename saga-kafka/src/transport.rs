//! The transport itself.
//!
//! # Cancel safety
//! Dropping a `connect` leaves no connection behind. Dropping a `subscribe` leaves no receiver behind; topics may have been made.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::transport::{Incoming, Message, Subscription, Transport, TransportError, TransportErrorKind};

use crate::health::KafkaHealth;
use crate::names::{Names, is_service};
use crate::options::KafkaOptions;
use crate::publishing::publisher::Publisher;
use crate::subscription::group::{From, Group};
use crate::subscription::poller;
use crate::subscription::receiver::{Receiver, Rejected};
use crate::wire::wire::{Outgoing, encode};

/// How many partitions a topic of dead letters has.
const DEAD_LETTER_PARTITIONS: i32 = 1;

/// A transport over Kafka. A clone is a handle on the same transport; the connections are closed with the last handle and the last
/// receiver.
///
/// Receivers of one subscription in one transport share a member of the consumer group, and so its partitions.
#[derive(Clone)]
pub struct KafkaTransport(Arc<Inner>);

struct Inner {
    options: KafkaOptions,
    names: Names,
    publisher: Arc<Publisher>,
    groups: Mutex<BTreeMap<String, Arc<Group>>>,
}

impl KafkaTransport {
    /// Connects to a cluster with the default options; `brokers` are those that are asked first, such as `one:9092,two:9092`.
    ///
    /// # Errors
    /// Those of [`connect_with`](Self::connect_with).
    ///
    /// # Cancel safety
    /// Dropping it leaves no connection behind.
    pub async fn connect(brokers: &str) -> Result<Self, TransportError> {
        Self::connect_with(KafkaOptions::new(brokers)).await
    }

    /// Connects to a cluster. If it is lost later, the transport connects again.
    ///
    /// # Errors
    /// One sentence, if no broker can be reached, or the options are invalid. No error contains the value of a property.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping it leaves no connection behind.
    pub async fn connect_with(options: KafkaOptions) -> Result<Self, TransportError> {
        let names = options.names()?;
        let publisher = Arc::new(Publisher::connect(options.clone()).await?);
        Ok(Self(Arc::new(Inner { options, names, publisher, groups: Mutex::default() })))
    }

    /// The options of the transport.
    pub fn options(&self) -> &KafkaOptions {
        &self.0.options
    }

    /// The current state.
    pub fn health(&self) -> KafkaHealth {
        let groups = self.groups();
        let active = groups.values().filter(|group| !group.has_ended());
        KafkaHealth {
            publisher: self.0.publisher.health(),
            subscriptions: active.map(|group| group.health()).collect(),
        }
    }

    /// Sends to a topic again after its number of partitions was changed. Until then its messages are answered as `Nacked`, since
    /// their keys move to other partitions, where they may overtake what was sent before. Call it in each process, when all that
    /// was sent before is handled.
    ///
    /// # Errors
    /// If there can be no such topic.
    pub fn confirm_partitions(&self, topic: &str) -> Result<(), TransportError> {
        let refused = |problem| TransportError::new(TransportErrorKind::Refused, "confirm", problem);
        self.0.publisher.confirm_partitions(&self.0.names.topic(topic).map_err(refused)?);
        Ok(())
    }

    /// Leaves all consumer groups, so that their partitions go to other processes at once. What was settled is committed. Receivers
    /// get an error from then on.
    ///
    /// A process that ends without this call is missed only after the
    /// [`session_timeout`](crate::KafkaOptions::session_timeout).
    ///
    /// # Cancel safety
    /// The groups are left in any case.
    pub async fn close(&self) {
        let groups: Vec<Arc<Group>> = self.groups().values().cloned().collect();
        for group in &groups {
            group.close();
        }
        for group in groups {
            group.ended().await;
        }
    }

    /// Receives from topics as a member of a group, which is made or joined.
    async fn receive(&self, plan: Plan, prefetch: usize) -> Result<Box<dyn Incoming>, TransportError> {
        let (group, id) = loop {
            match self.join_or_start(&plan, prefetch)? {
                Membership::Joined(group, receiver) => break (group, receiver),
                Membership::Ending(group) => group.ended().await,
            }
        };
        let Inner { options, names, publisher, .. } = &*self.0;
        let receiver = Receiver {
            group: Arc::clone(&group),
            id,
            names: names.clone(),
            payload_bytes_max: options.payload_bytes_max,
            rejected: plan.rejected,
            publisher: Arc::clone(publisher),
        };
        group.ready(&plan.topics, options.join_timeout).await?;
        Ok(Box::new(receiver))
    }

    /// The group with a receiver more; or one that has to end first.
    fn join_or_start(&self, plan: &Plan, prefetch: usize) -> Result<Membership, TransportError> {
        let mut groups = self.groups();
        if let Some(group) = groups.get(&plan.group) {
            if let Some(id) = group.join(&plan.topics, prefetch) {
                return Ok(Membership::Joined(Arc::clone(group), id));
            }
            if !group.has_ended() {
                return Ok(Membership::Ending(Arc::clone(group)));
            }
        }
        let (name, topics, options) = (plan.name.clone(), plan.topics.clone(), self.0.options.clone());
        let (group, id) =
            Group::start(name, plan.group.clone(), topics, prefetch, move |group| poller::run(group, &options))?;
        groups.insert(plan.group.clone(), Arc::clone(&group));
        Ok(Membership::Joined(group, id))
    }

    fn groups(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Group>>> {
        self.0.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a group has a receiver more.
enum Membership {
    /// It has: the receiver's number.
    Joined(Arc<Group>, u64),
    /// It has to end first.
    Ending(Arc<Group>),
}

/// A group, and what it receives.
struct Plan {
    name: String,
    group: String,
    topics: BTreeMap<String, From>,
    rejected: Rejected,
}

#[async_trait]
impl Transport for KafkaTransport {
    fn name(&self) -> &'static str {
        "kafka"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let Inner { options, names, publisher, .. } = &*self.0;
        let refused = |problem| TransportError::new(TransportErrorKind::Refused, "publish", problem);
        let encode = |message| encode(message, names, options.payload_bytes_max).map_err(refused);
        let encoded: Vec<Result<Outgoing, TransportError>> = messages.into_iter().map(encode).collect();
        let sent: Vec<&Outgoing> = encoded.iter().filter_map(|message| message.as_ref().ok()).collect();
        let mut answers = publisher.publish(&sent).await.into_iter();
        // There is one answer for each message that was sent.
        let mut answer = || answers.next().unwrap_or_else(|| Err(crate::publishing::producer::lost()));
        encoded.into_iter().map(|message| message.and_then(|_| answer())).collect()
    }

    fn redelivers_within(&self) -> Option<Duration> {
        self.0.options.redelivers_within
    }

    fn payload_bytes_max(&self) -> Option<usize> {
        Some(self.0.options.payload_bytes_max)
    }

    async fn reachable(&self) -> Result<(), TransportError> {
        self.0.publisher.reachable()
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        let Subscription { name, topics, prefetch } = subscription;
        let Inner { options, names, publisher, .. } = &*self.0;
        let refused = |problem| TransportError::new(TransportErrorKind::Refused, "subscribe", problem);
        let group = names.group(&name).map_err(refused)?;
        let dead_letters = names.dead_letters(&name).map_err(refused)?;
        let mut read = BTreeMap::new();
        for topic in &topics {
            let from = if is_service(topic) { From::Beginning } else { From::End };
            let topic = names.topic(topic).map_err(refused)?;
            publisher.require(&topic, options.partitions).await?;
            // Where services and events share a topic, all of it is read.
            let entry = read.entry(topic).or_insert(from);
            *entry = if from == From::Beginning { from } else { *entry };
        }
        publisher.require(&dead_letters, DEAD_LETTER_PARTITIONS).await?;
        let rejected = Rejected::GivenUp { after: options.rejections_max, to: dead_letters };
        self.receive(Plan { name, group, topics: read, rejected }, prefetch).await
    }

    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        let refused = |problem| TransportError::new(TransportErrorKind::Refused, "subscribe", problem);
        let topic = self.0.names.dead_letters(subscription).map_err(refused)?;
        self.0.publisher.require(&topic, DEAD_LETTER_PARTITIONS).await?;
        let name = format!("{subscription} (dead letters)");
        let topics = BTreeMap::from([(topic.clone(), From::Beginning)]);
        let plan = Plan { name, group: topic, topics, rejected: Rejected::Kept };
        self.receive(plan, prefetch).await.map(Some)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The threads leave the groups in their own time. Receivers go on.
        for group in self.groups.get_mut().unwrap_or_else(PoisonError::into_inner).values() {
            if !group.lock().records.has_receivers() {
                group.close();
            }
        }
    }
}

impl fmt::Debug for KafkaTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaTransport").field("options", &self.0.options).finish_non_exhaustive()
    }
}
