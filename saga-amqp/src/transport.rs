//! The transport itself.
//!
//! # Cancel safety
//! Dropping a `connect` or a `subscribe` leaves no connection behind; parts of the topology may have been made.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use lapin::types::ShortString;
use saga_core::transport::{
    Delivery, Incoming, Message, Settlement, Subscription, Transport, TransportError, TransportErrorKind,
};

use crate::connection;
use crate::consumer::Receiver;
use crate::fate::Fate;
use crate::health::{AmqpHealth, HealthCell, SubscriptionHealth};
use crate::names::{Names, check_topic};
use crate::options::{AmqpOptions, Unrouted};
use crate::publisher::Publisher;
use crate::session::Plans;
use crate::topology::{Needs, Queues};
use crate::wire::{Outgoing, encode};

/// A transport over RabbitMQ. A clone is a handle on the same transport; the connections are closed with the last handle and
/// the last receiver.
#[derive(Debug, Clone)]
pub struct AmqpTransport {
    options: AmqpOptions,
    /// As which user messages are sent.
    user: Option<ShortString>,
    publisher: Arc<Publisher>,
    subscriptions: Arc<Mutex<Subscriptions>>,
}

/// The subscriptions that are received from.
#[derive(Debug, Default)]
struct Subscriptions {
    count: u64,
    healths: BTreeMap<u64, (String, HealthCell)>,
}

impl AmqpTransport {
    /// Connects to a broker with the default options.
    ///
    /// # Errors
    /// Those of [`connect_with`](Self::connect_with).
    ///
    /// # Cancel safety
    /// Dropping it leaves no connection behind.
    pub async fn connect(url: &str) -> Result<Self, TransportError> {
        Self::connect_with(AmqpOptions::new(url)).await
    }

    /// Connects to a broker, and declares or checks the exchanges. If the connection is lost later, the transport reconnects.
    ///
    /// # Errors
    /// One sentence, if the broker cannot be reached or refuses the user, if the virtual host does not exist, if an exchange or a
    /// queue is missing or has other arguments, or if the options are invalid. No error contains a password.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping it leaves no connection behind.
    pub async fn connect_with(options: AmqpOptions) -> Result<Self, TransportError> {
        let user = connection::user(&options)?;
        let publisher = Arc::new(Publisher::connect(options.clone()).await?);
        Ok(Self { options, user, publisher, subscriptions: Arc::default() })
    }

    /// The options of the connection.
    pub fn options(&self) -> &AmqpOptions {
        &self.options
    }

    /// The current state of the connections.
    pub fn health(&self) -> AmqpHealth {
        let read = |(name, health): &(String, HealthCell)| SubscriptionHealth {
            name: name.clone(),
            connection: health.read(),
        };
        let subscriptions = lock(&self.subscriptions).healths.values().map(read).collect();
        AmqpHealth { publisher: self.publisher.health().read(), subscriptions }
    }

    async fn receive(&self, plans: Plans, prefetch: usize) -> Result<Box<dyn Incoming>, TransportError> {
        // 0 would be no limit at all.
        let prefetch = u16::try_from(prefetch.max(1)).unwrap_or(u16::MAX);
        let health = HealthCell::new();
        let name = if plans.died_in.is_some() { format!("{} (dead letters)", plans.name) } else { plans.name.clone() };
        let receiver = Receiver::begin(plans, health.clone(), prefetch).await?;
        Ok(Box::new(Registered { entry: Entry::new(&self.subscriptions, name, health), receiver }))
    }

    fn answer(&self, fate: Result<Fate, TransportError>, message: &Outgoing) -> Result<(), TransportError> {
        let must_be_taken = message.is_addressed || self.options.unrouted == Unrouted::Refuse;
        if matches!(fate?, Fate::Returned) && must_be_taken {
            let topic = message.routing_key.as_str();
            let exchange = self.publisher.names().exchange(topic);
            let detail = format!(
                "no queue takes the topic {topic:?} from the exchange {exchange:?}; start the service that receives it, which \
                 declares its queue, or declare and bind one"
            );
            return Err(TransportError::new(TransportErrorKind::NoRoute, "publish", detail));
        }
        Ok(())
    }
}

#[async_trait]
impl Transport for AmqpTransport {
    fn name(&self) -> &'static str {
        "amqp"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let refused = |problem| TransportError::new(TransportErrorKind::Refused, "publish", problem);
        let bytes_max = self.options.payload_bytes_max;
        let encode = |message| encode(message, bytes_max, self.user.as_ref()).map(Arc::new).map_err(refused);
        let encoded: Vec<Result<Arc<Outgoing>, TransportError>> = messages.into_iter().map(encode).collect();
        let sent: Vec<Arc<Outgoing>> = encoded.iter().filter_map(|message| message.as_ref().ok().cloned()).collect();
        if sent.is_empty() {
            return encoded.into_iter().map(|message| message.map(drop)).collect();
        }
        let mut fates = self.publisher.publish(&sent).await.into_iter();
        let mut answer = |message: Arc<Outgoing>| {
            // There is one fate for each message that was sent.
            let lost = || {
                TransportError::new(
                    TransportErrorKind::Unknown,
                    "publish",
                    "the outcome is unknown, since the connection ended; the message is sent again",
                )
            };
            self.answer(fates.next().unwrap_or_else(|| Err(lost())), &message)
        };
        encoded.into_iter().map(|message| message.and_then(&mut answer)).collect()
    }

    async fn reachable(&self) -> Result<(), TransportError> {
        self.publisher.reachable()
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        let Subscription { name, topics, prefetch } = subscription;
        let refused = |problem| TransportError::new(TransportErrorKind::Refused, "subscribe", problem);
        let names = self.publisher.names().clone();
        let queue = names.queue(&name).map_err(refused)?;
        topics.iter().try_for_each(|topic| check_topic(topic)).map_err(refused)?;
        let needs = Needs { names, queues: Queues::Subscription { queue: queue.clone(), topics } };
        self.receive(Plans { options: self.options.clone(), needs, name, queue, died_in: None }, prefetch).await
    }

    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        let refused = |problem| TransportError::new(TransportErrorKind::Refused, "subscribe", problem);
        let names = self.publisher.names().clone();
        let died_in = names.queue(subscription).map_err(refused)?;
        let queue = Names::dead_letters_of(&died_in);
        let needs = Needs { names, queues: Queues::DeadLettersOf { queue: died_in.clone() } };
        let (options, name, died_in) = (self.options.clone(), subscription.to_owned(), Some(died_in));
        self.receive(Plans { options, needs, name, queue, died_in }, prefetch).await.map(Some)
    }
}

/// A receiver whose health is listed for as long as it lives.
struct Registered {
    receiver: Receiver,
    #[expect(dead_code, reason = "it is there to be dropped")]
    entry: Entry,
}

#[async_trait]
impl Incoming for Registered {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        self.receiver.receive(limit).await
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        self.receiver.settle(settled).await
    }
}

struct Entry {
    subscriptions: Arc<Mutex<Subscriptions>>,
    number: u64,
}

impl Entry {
    fn new(subscriptions: &Arc<Mutex<Subscriptions>>, name: String, health: HealthCell) -> Self {
        let mut locked = lock(subscriptions);
        locked.count += 1;
        let number = locked.count;
        locked.healths.insert(number, (name, health));
        Self { subscriptions: Arc::clone(subscriptions), number }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.subscriptions).healths.remove(&self.number);
    }
}

fn lock(subscriptions: &Mutex<Subscriptions>) -> MutexGuard<'_, Subscriptions> {
    subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
}
