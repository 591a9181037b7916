//! The transport itself.
//!
//! # Cancel safety
//! Dropping a `connect` leaves nothing behind. Dropping a `subscribe` leaves no receiver behind; queues and topics may have been made.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::transport::{Incoming, Message, Subscription, Transport, TransportError, TransportErrorKind};

use crate::clients::Clients;
use crate::health::SqsHealth;
use crate::held::HeldMessages;
use crate::names::is_service;
use crate::options::SqsOptions;
use crate::publisher::Publisher;
use crate::receiver::Receiver;
use crate::subscribed::Subscribed;
use crate::topology::{Needs, Topology};
use crate::wire::{Call, Outgoing, encode};

/// A transport over Amazon SQS and SNS. A clone is a handle on the same transport.
#[derive(Clone)]
pub struct SqsTransport(Arc<Inner>);

struct Inner {
    topology: Arc<Topology>,
    publisher: Arc<Publisher>,
    subscriptions: Mutex<Vec<Weak<Subscribed>>>,
}

impl SqsTransport {
    /// Connects with the region and the credentials of the environment: see [`SqsOptions::from_env`].
    ///
    /// # Errors
    /// Those of [`connect_with`](Self::connect_with).
    ///
    /// # Cancel safety
    /// Dropping it leaves nothing behind.
    pub async fn connect() -> Result<Self, TransportError> {
        Self::connect_with(SqsOptions::from_env()).await
    }

    /// Makes one request, to see that SQS can be reached and knows the credentials.
    ///
    /// # Errors
    /// One sentence, if SQS cannot be reached or refuses the credentials, or the options are invalid. No error contains a
    /// credential.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping it leaves nothing behind.
    pub async fn connect_with(options: SqsOptions) -> Result<Self, TransportError> {
        let clients = Clients::new(&options)?;
        let transport = Self::over(clients, options)?;
        match transport.0.topology.probe().await {
            Err(failure) if failure.is_outage() || failure.may_pass_soon() => {
                Err(failure.error("connect", "reach SQS"))
            }
            // Whether this request is allowed says nothing about the others.
            _ => Ok(transport),
        }
    }

    pub(crate) fn over(clients: Clients, options: SqsOptions) -> Result<Self, TransportError> {
        let names = options.names()?;
        let topology = Arc::new(Topology::new(clients, options, names));
        let publisher = Publisher::new(Arc::clone(&topology));
        Ok(Self(Arc::new(Inner { topology, publisher, subscriptions: Mutex::default() })))
    }

    /// The options of the transport.
    pub fn options(&self) -> &SqsOptions {
        &self.0.topology.options
    }

    /// The current state.
    pub fn health(&self) -> SqsHealth {
        let known: Vec<Arc<Subscribed>> = self.subscriptions().iter().filter_map(Weak::upgrade).collect();
        let subscriptions = known.iter().filter(|one| !one.is_closed()).map(|one| one.health()).collect();
        SqsHealth { publisher: self.0.publisher.health(), subscriptions }
    }

    /// Ends all receivers, and waits until SQS knows what they accepted and has what they did not. Receivers get an error from then
    /// on.
    ///
    /// After a process that ends without this call, the messages that it had come again after the
    /// [`visibility`](crate::SqsOptions::visibility) time.
    ///
    /// # Cancel safety
    /// The receivers end in any case.
    pub async fn close(&self) {
        let open: Vec<Arc<Subscribed>> = self.subscriptions().iter().filter_map(Weak::upgrade).collect();
        for subscribed in &open {
            subscribed.close();
        }
        for subscribed in open {
            subscribed.ended().await;
        }
    }

    async fn receive(
        &self,
        name: String,
        needs: Needs,
        prefetch: usize,
        died_in: Option<String>,
    ) -> Result<Box<dyn Incoming>, TransportError> {
        let topology = Arc::clone(&self.0.topology);
        let url = topology.require(&needs).await?;
        let held = HeldMessages::new(prefetch, topology.options.visibility);
        let subscribed = Arc::new(Subscribed::new(name, needs, topology, url, held));
        let mut subscriptions = self.subscriptions();
        subscriptions.retain(|one| one.strong_count() > 0);
        subscriptions.push(Arc::downgrade(&subscribed));
        Ok(Box::new(Receiver::start(subscribed, died_in)))
    }

    fn subscriptions(&self) -> MutexGuard<'_, Vec<Weak<Subscribed>>> {
        self.0.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Transport for SqsTransport {
    fn name(&self) -> &'static str {
        "sqs"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let Topology { names, options, .. } = &*self.0.topology;
        let call = Call::new();
        let refused = |problem| TransportError::new(TransportErrorKind::Refused, "publish", problem);
        let encode =
            |(index, message)| encode(message, index, &call, names, options.payload_bytes_max).map_err(refused);
        let encoded: Vec<Result<Outgoing, TransportError>> = messages.into_iter().enumerate().map(encode).collect();
        let sent: Vec<&Outgoing> = encoded.iter().filter_map(|message| message.as_ref().ok()).collect();
        let mut answers = self.0.publisher.publish(&sent).await.into_iter();
        // There is one answer for each message that was sent.
        let lost = || Err(TransportError::new(TransportErrorKind::Unknown, "publish", "the outcome is unknown"));
        let mut answer = || answers.next().unwrap_or_else(lost);
        encoded.into_iter().map(|message| message.and_then(|_| answer())).collect()
    }

    fn redelivers_within(&self) -> Option<Duration> {
        Some(self.options().retention)
    }

    fn payload_bytes_max(&self) -> Option<usize> {
        Some(self.options().payload_bytes_max)
    }

    async fn reachable(&self) -> Result<(), TransportError> {
        self.0.publisher.reachable()
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        let Subscription { name, topics, prefetch } = subscription;
        let names = &self.0.topology.names;
        let refused = |problem| TransportError::new(TransportErrorKind::Refused, "subscribe", problem);
        let (of_services, of_events): (Vec<&String>, Vec<&String>) = topics.iter().partition(|topic| is_service(topic));
        if let Some(other) = of_services.into_iter().find(|topic| **topic != name) {
            let problem = format!(
                "the messages of {other:?} are in the queue of that name, and the subscription is called {name:?}; give it the \
                 name of the service"
            );
            return Err(refused(problem));
        }
        let sns_topics: Result<Vec<String>, String> = of_events.into_iter().map(|topic| names.topic(topic)).collect();
        let needs = Needs {
            queue: names.queue(&name).map_err(refused)?,
            dead_letters: Some(names.dead_letters(&name).map_err(refused)?),
            topics: sns_topics.map_err(refused)?,
        };
        self.receive(name, needs, prefetch, None).await
    }

    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        let names = &self.0.topology.names;
        let refused = |problem| TransportError::new(TransportErrorKind::Refused, "subscribe", problem);
        let queue = names.dead_letters(subscription).map_err(refused)?;
        let died_in = names.queue(subscription).map_err(refused)?;
        let needs = Needs { queue, dead_letters: None, topics: Vec::new() };
        let name = format!("{subscription} (dead letters)");
        self.receive(name, needs, prefetch, Some(died_in)).await.map(Some)
    }
}

impl fmt::Debug for SqsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqsTransport").field("options", self.options()).finish_non_exhaustive()
    }
}
