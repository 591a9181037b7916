//! The receiving end of a subscription, over as many sessions as it takes.
//!
//! # Cancel safety
//! A dropped `receive` loses nothing: a session that is being made goes on being made, and what came is in it.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use lapin::Channel;
use lapin::message::Delivery as Came;
use lapin::options::{BasicAckOptions, BasicRejectOptions};
use saga_core::transport::{Delivery, Incoming, Settlement, TransportError, TransportErrorKind};
use tokio::task::{JoinHandle, JoinSet};

use crate::backoff::Backoff;
use crate::dead_letter::dead_letter;
use crate::health::HealthCell;
use crate::publisher::Publisher;
use crate::session::{Ended, Plans, Session};
use crate::unsettled::Unsettled;
use crate::window::Fate;
use crate::wire::{Outgoing, decode};

/// How many messages are under way while one is among them that the library cannot read.
const CAREFUL_PREFETCH: u16 = 1;

/// The receiving end of a subscription.
pub(crate) struct Receiver {
    plans: Arc<Plans>,
    publisher: Arc<Publisher>,
    health: HealthCell,
    prefetch: u16,
    /// How many messages are still taken one by one, because what could not be read was among so many.
    careful: u32,
    backoff: Backoff,
    session: Option<Session>,
    opening: Option<Opening>,
    unsettled: Arc<Mutex<Unsettled>>,
    /// Bad messages on their way to the dead letters.
    laying_aside: JoinSet<()>,
}

/// A session that is being made.
struct Opening(JoinHandle<Result<Session, TransportError>>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Receiver {
    pub(crate) async fn begin(
        plans: Plans,
        publisher: Arc<Publisher>,
        health: HealthCell,
        prefetch: u16,
    ) -> Result<Self, TransportError> {
        let plans = Arc::new(plans);
        let session = Session::begin(Arc::clone(&plans), prefetch).await?;
        health.connected(session.connection().status().clone());
        let backoff = Backoff::new(plans.options.reconnect_delay_max);
        Ok(Self {
            plans,
            publisher,
            health,
            prefetch,
            careful: 0,
            backoff,
            session: Some(session),
            opening: None,
            unsettled: Arc::default(),
            laying_aside: JoinSet::new(),
        })
    }

    /// The running session; a lost one is made again first, however long it takes.
    async fn session(&mut self) -> Result<&mut Session, TransportError> {
        if self.is_careful_for_nothing() {
            tracing::info!(subscription = self.plans.name, "back to taking many messages at a time");
            self.end_session();
        }
        while self.session.is_none() {
            match self.open().await {
                Ok(session) => {
                    self.health.connected(session.connection().status().clone());
                    self.session = Some(session);
                }
                Err(error) => {
                    let attempts = self.backoff.attempts();
                    tracing::warn!(subscription = self.plans.name, attempts, %error, "still not subscribed");
                    self.health.failed_again(&error.to_string());
                    if error.kind() == TransportErrorKind::Refused {
                        return Err(error);
                    }
                }
            }
        }
        match self.session.as_mut() {
            Some(session) => Ok(session),
            None => Err(TransportError::new(TransportErrorKind::Unavailable, "receive", "the subscription is lost")),
        }
    }

    async fn open(&mut self) -> Result<Session, TransportError> {
        if self.opening.is_none() {
            let prefetch = if self.careful > 0 { CAREFUL_PREFETCH } else { self.prefetch };
            let (plans, pause) = (Arc::clone(&self.plans), self.pause());
            let opening = async move {
                tokio::time::sleep(pause).await;
                Session::begin(plans, prefetch).await
            };
            self.opening = Some(Opening(tokio::spawn(opening)));
        }
        let opened = match self.opening.as_mut() {
            Some(opening) => (&mut opening.0).await,
            None => return Err(TransportError::new(TransportErrorKind::Closed, "receive", "the receiver was dropped")),
        };
        self.opening = None;
        opened.unwrap_or_else(|error| {
            Err(TransportError::new(TransportErrorKind::Unavailable, "receive", error.to_string()))
        })
    }

    /// Behind a message that cannot be read the pauses stay short: each attempt brings it nearer to being given up.
    fn pause(&mut self) -> std::time::Duration {
        if self.careful > 0 { Backoff::new(self.plans.options.reconnect_delay_max).next() } else { self.backoff.next() }
    }

    fn end_session(&mut self) {
        self.session = None;
        self.laying_aside = JoinSet::new();
        // A task that was just aborted may still hold the old tags: it keeps them, and the new session gets its own.
        let next = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).next();
        self.unsettled = Arc::new(Mutex::new(next));
    }

    fn ended(&mut self, ended: &Ended) {
        tracing::warn!(subscription = self.plans.name, why = ended.why, "the subscription is lost, and is made again");
        self.health.lost(&ended.why);
        if ended.is_unreadable {
            self.careful = u32::from(self.prefetch);
        }
        self.end_session();
    }

    /// Whether messages are taken one by one, and the reason has passed. A session changes only when nothing is unsettled.
    fn is_careful_for_nothing(&self) -> bool {
        let is_narrow = self.session.as_ref().is_some_and(|session| session.prefetch < self.prefetch);
        is_narrow && self.careful == 0 && self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// A delivery that is a message; any other is laid aside.
    fn read(&mut self, mut came: Came) -> Option<Delivery> {
        self.careful = self.careful.saturating_sub(1);
        let tag = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).arrived(came.delivery_tag);
        let payload_bytes_max = self.plans.options.payload_bytes_max;
        let routing_key = came.routing_key.clone();
        match decode(routing_key.as_str(), &came.properties, &mut came.data, payload_bytes_max) {
            Ok(message) => Some(Delivery { tag, redelivered: came.redelivered, message }),
            Err(reason) => {
                self.lay_aside(came, tag, &reason);
                None
            }
        }
    }

    fn lay_aside(&mut self, mut came: Came, tag: u64, reason: &str) {
        let Some(session) = &self.session else { return };
        tracing::warn!(queue = self.plans.queue, reason, "a message becomes a dead letter");
        let channel_tag = came.delivery_tag;
        let letter = dead_letter(&mut came, &self.plans.queue, reason);
        let laying = Laying {
            publisher: Arc::clone(&self.publisher),
            channel: session.channel().clone(),
            unsettled: Arc::clone(&self.unsettled),
            backoff: Backoff::new(self.plans.options.reconnect_delay_max),
        };
        while self.laying_aside.try_join_next().is_some() {}
        self.laying_aside.spawn(laying.lay(letter, tag, channel_tag));
    }
}

/// Brings one bad message to the dead letters.
struct Laying {
    publisher: Arc<Publisher>,
    channel: Channel,
    unsettled: Arc<Mutex<Unsettled>>,
    backoff: Backoff,
}

impl Laying {
    /// Publishes the letter until it is confirmed, and only then takes the message from its queue.
    async fn lay(mut self, letter: Outgoing, tag: u64, channel_tag: u64) {
        let exchange = self.publisher.names().dead_letters();
        while self.channel.status().connected() {
            let problem = match self.publisher.publish(&exchange, &[&letter]).await.pop() {
                Some(Ok(Fate::Confirmed)) => return self.settle(tag, channel_tag, true).await,
                Some(Err(error)) if error.kind() == TransportErrorKind::Refused => {
                    tracing::error!(%error, "the broker refuses a dead letter; it is left to the broker without a reason");
                    return self.settle(tag, channel_tag, false).await;
                }
                Some(Err(error)) => error.to_string(),
                _ => "no queue takes it".to_owned(),
            };
            tracing::warn!(problem, "a dead letter could not be stored yet");
            tokio::time::sleep(self.backoff.next()).await;
        }
    }

    async fn settle(&self, tag: u64, channel_tag: u64, is_stored: bool) {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).settle(&[tag], &[]);
        let told = if is_stored {
            self.channel.basic_ack(channel_tag, BasicAckOptions::default()).await
        } else {
            // Without requeueing: the broker itself makes a dead letter of it.
            self.channel.basic_reject(channel_tag, BasicRejectOptions { requeue: false }).await
        };
        if let Err(error) = told {
            tracing::debug!(%error, "a dead letter may come twice");
        }
    }
}

#[async_trait]
impl Incoming for Receiver {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        loop {
            let mut came = match self.session().await?.next().await {
                Ok(came) => Some(came),
                Err(ended) => {
                    self.ended(&ended);
                    continue;
                }
            };
            self.backoff.reset();
            let mut deliveries = Vec::new();
            while let Some(one) = came.take() {
                deliveries.extend(self.read(one));
                if deliveries.len() < limit.max(1) {
                    came = self.session.as_mut().and_then(Session::next_at_once);
                }
            }
            if !deliveries.is_empty() {
                return Ok(deliveries);
            }
        }
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        let of = |wanted| settled.iter().filter(move |(_, settlement)| *settlement == wanted).map(|(tag, _)| *tag);
        let (accepted, rejected): (Vec<u64>, Vec<u64>) =
            (of(Settlement::Accept).collect(), of(Settlement::Reject).collect());
        let Some(session) = &mut self.session else { return Ok(()) };
        let plan = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).settle(&accepted, &rejected);
        session.settle(plan, self.plans.options.confirm_timeout).await
    }
}
