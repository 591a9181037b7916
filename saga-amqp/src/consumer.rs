//! The receiving end of a subscription, over as many sessions as it takes.
//!
//! # Cancel safety
//! A dropped `receive` loses nothing: the session opens in a task of its own, and keeps the messages that have arrived.

use std::sync::Arc;

use async_trait::async_trait;
use lapin::message::Delivery as BrokerDelivery;
use saga_core::transport::{Delivery, Incoming, Settlement, TransportError, TransportErrorKind};
use tokio::task::JoinHandle;

use crate::backoff::Backoff;
use crate::health::HealthCell;
use crate::names::is_service;
use crate::origin::Origin;
use crate::session::{Ended, Plans, Session};
use crate::unsettled::Unsettled;
use crate::wire::decode;
use saga_core::__private::log;

/// How many messages are under way while one is among them that the library cannot read.
const CAREFUL_PREFETCH: u16 = 1;

/// The receiving end of a subscription.
pub(crate) struct Receiver {
    plans: Arc<Plans>,
    health: HealthCell,
    prefetch: u16,
    /// How many messages are still taken one by one, because what could not be read was among so many.
    careful: u32,
    backoff: Backoff,
    session: Option<Session>,
    opening: Option<Opening>,
    unsettled: Unsettled,
}

/// A session that is being made.
struct Opening(JoinHandle<Result<Session, TransportError>>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Receiver {
    pub(crate) async fn begin(plans: Plans, health: HealthCell, prefetch: u16) -> Result<Self, TransportError> {
        let plans = Arc::new(plans);
        let session = Session::begin(Arc::clone(&plans), prefetch).await?;
        health.connected(session.connection().status().clone());
        let backoff = Backoff::new(plans.options.reconnect_delay_max);
        Ok(Self {
            plans,
            health,
            prefetch,
            careful: 0,
            backoff,
            session: Some(session),
            opening: None,
            unsettled: Unsettled::default(),
        })
    }

    /// The running session; a lost one is made again first, however long it takes.
    async fn session(&mut self) -> Result<&mut Session, TransportError> {
        if self.is_careful_for_nothing() {
            log::info!(queue = self.plans.queue, "prefetch restored");
            self.end_session();
        }
        while self.session.is_none() {
            match self.open().await {
                Ok(session) => {
                    log::info!(queue = self.plans.queue, "subscription restored");
                    self.health.connected(session.connection().status().clone());
                    self.session = Some(session);
                }
                Err(error) => {
                    let attempts = self.backoff.attempts();
                    // That it is lost was said.
                    log::debug!(queue = self.plans.queue, attempt = attempts, %error, "subscription not restored");
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
        self.unsettled = self.unsettled.next();
    }

    fn ended(&mut self, ended: &Ended) {
        log::warn!(queue = self.plans.queue, error = ended.why, "subscription lost");
        self.health.lost(&ended.why);
        if let Some(session) = &self.session {
            self.plans.options.turn.move_on(session.host);
        }
        if ended.is_unreadable {
            self.careful = u32::from(self.prefetch);
        }
        self.end_session();
    }

    /// Whether messages are taken one by one, and the reason has passed. A session changes only when nothing is unsettled.
    fn is_careful_for_nothing(&self) -> bool {
        let is_narrow = self.session.as_ref().is_some_and(|session| session.prefetch < self.prefetch);
        is_narrow && self.careful == 0 && self.unsettled.is_empty()
    }

    /// Decodes a delivery of the broker.
    fn read(&mut self, delivery: BrokerDelivery) -> Delivery {
        self.careful = self.careful.saturating_sub(1);
        let tag = self.unsettled.arrived(delivery.delivery_tag);
        let Plans { name, queue, options, died_in, .. } = &*self.plans;
        let origin = died_in.as_ref().map(|died_in| Origin::of(&delivery.properties, died_in, options.delivery_limit));
        let (exchange, key) = match &origin {
            Some(origin) => (origin.exchange.as_str(), origin.routing_key.as_str()),
            None => (delivery.exchange.as_str(), delivery.routing_key.as_str()),
        };
        // A message that was put straight into the queue of a service is addressed to that service.
        let is_direct = exchange.is_empty() && key == died_in.as_ref().unwrap_or(queue) && is_service(name);
        let topic = if is_direct { name } else { key };
        let message = decode(topic, &delivery.properties, delivery.data, options.payload_bytes_max);
        if let Err(unreadable) = &message {
            log::warn!(queue, error = unreadable.problem, "malformed message");
        }
        // The broker takes no message whose user is not the one of the connection that it comes from.
        let user = delivery.properties.user_id().as_ref().map(ToString::to_string);
        Delivery {
            tag,
            redelivered: delivery.redelivered,
            message,
            dead_letter: origin.map(|origin| origin.death),
            user,
        }
    }
}

#[async_trait]
impl Incoming for Receiver {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        loop {
            let mut delivery = match self.session().await?.next().await {
                Ok(delivery) => Some(delivery),
                Err(ended) => {
                    self.ended(&ended);
                    continue;
                }
            };
            self.backoff.reset();
            let mut deliveries = Vec::new();
            while let Some(one) = delivery.take() {
                deliveries.push(self.read(one));
                if deliveries.len() < limit.max(1) {
                    delivery = self.session.as_mut().and_then(Session::next_at_once);
                }
            }
            return Ok(deliveries);
        }
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        let of = |wanted| settled.iter().filter(move |(_, settlement)| *settlement == wanted).map(|(tag, _)| *tag);
        let (accepted, rejected): (Vec<u64>, Vec<u64>) =
            (of(Settlement::Accept).collect(), of(Settlement::Reject).collect());
        let Some(session) = &mut self.session else { return Ok(()) };
        let plan = self.unsettled.settle(&accepted, &rejected);
        session.settle(plan, self.plans.options.confirm_timeout).await
    }
}
