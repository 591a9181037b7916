//! Receives messages: each is stored, or has taken effect, before it is acknowledged.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::engine::choreography::Choreography;
use crate::engine::commit::{Committer, log_unreadable_work};
use crate::engine::context::EngineContext;
use crate::engine::coordinator::Coordinator;
use crate::engine::dead_letter::DeadLetters;
use crate::engine::health::panicked;
use crate::engine::host::Host;
use crate::engine::lifecycle::backoff_after;
use crate::engine::message::{HandleError, InboundMessage, Validator, age, for_service};
use crate::engine::store_calls::catch_panic;
use crate::env::Pause;
use crate::log;
use crate::store::{
    ClaimedMessage, DeadLetterReason, Lease, Message, MessageKind, NewReceived, ReceivedBatch, Store, StoreError,
    WorkId, WorkRef,
};
use crate::transport::{
    Delivery, Incoming, Settlement, Subscription, TransportError, TransportErrorKind, service_topic,
};
use crate::unwind::caught_while;

/// How long the start of a runtime waits for the first subscription of a service. A new consumer group of Kafka takes some seconds, on a
/// busy machine many, and events that are published before its first subscription are lost to a service.
const FIRST_SUBSCRIPTION_MAX: Duration = Duration::from_secs(30);

/// How many received messages are handled at a time.
const MESSAGES_AT_A_TIME: usize = 64;
/// How many messages are stored in one commit.
const STORED_AT_A_TIME: usize = 256;

/// How many dead letters of the broker are stored before the first of them is acknowledged.
const DEAD_LETTERS_AT_A_TIME: usize = 16;

/// Which messages of a service are received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InboundSource {
    /// Those in its queue.
    Messages,
    /// Those that the transport gave up on.
    DeadLetters,
}

impl InboundSource {
    fn operation(self) -> &'static str {
        match self {
            Self::Messages => "receive",
            Self::DeadLetters => "receive dead letters",
        }
    }
}

pub(crate) fn arrived(
    messages: Vec<Message>,
    received_batch: &ReceivedBatch,
    first_id: i64,
    service: &str,
) -> Vec<InboundMessage> {
    let rows = received_batch.new.iter().zip(first_id..);
    let arrived = |(message, (is_new, id)): (Message, (&bool, i64))| {
        let age = age(&message, received_batch.now);
        InboundMessage::new(message, is_new.then_some(WorkRef::inserted(WorkId(id))), age, service.to_owned())
    };
    messages.into_iter().zip(rows).map(arrived).collect()
}

/// The service that a stored message was received for.
fn source_of(message: &Message) -> String {
    match &message.headers.service {
        // An event is published for all subscribers, and this service received it.
        Some(service) if message.kind == MessageKind::Event => service.clone(),
        _ => message.topic.strip_prefix("service:").unwrap_or(&message.topic).to_owned(),
    }
}

/// Receives messages, and hands each to the component that handles it.
pub(crate) struct Inbox<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    pub(super) committer: Arc<Committer<S>>,
    pub(super) validator: Arc<Validator<S>>,
    pub(super) host: Arc<Host<S>>,
    pub(super) coordinator: Arc<Coordinator<S>>,
    pub(super) choreography: Arc<Choreography<S>>,
    pub(super) dead_letters: DeadLetters<S>,
    /// How many messages are handled at a time.
    pub(super) permits: Arc<Semaphore>,
}

impl<S: Store> Inbox<S> {
    pub(crate) fn new(coordinator: Arc<Coordinator<S>>, choreography: Arc<Choreography<S>>) -> Self {
        let host = Arc::clone(&choreography.host);
        let ctx = Arc::clone(&host.ctx);
        let (committer, validator) = (Arc::clone(&host.committer), Arc::clone(&host.validator));
        let dead_letters = DeadLetters::new(Arc::clone(&committer), Arc::clone(&validator));
        let permits = Arc::new(Semaphore::new(MESSAGES_AT_A_TIME));
        Self { ctx, committer, validator, host, coordinator, choreography, dead_letters, permits }
    }
}

impl<S: Store> Inbox<S> {
    /// The first subscription of a service; `None` if the transport cannot be reached now, and is tried again later.
    pub(crate) async fn subscribe_first(&self, service: &str) -> Option<Box<dyn Incoming>> {
        let source = InboundSource::Messages;
        let subscribing = self.subscribe(service, source);
        let error = match crate::env::timeout(&*self.ctx.env, FIRST_SUBSCRIPTION_MAX, subscribing).await {
            Ok(Ok(incoming)) => return incoming,
            Ok(Err(error)) => error,
            Err(_) => {
                let detail = format!("no answer within {FIRST_SUBSCRIPTION_MAX:?}");
                TransportError::new(TransportErrorKind::Unavailable, "subscribe", detail)
            }
        };
        log::warn!(service, %error, "service not subscribed yet");
        self.ctx.health.subscription_failed(source.operation(), service, &error);
        None
    }

    /// Receives the messages of a service until the runtime stops.
    pub(crate) async fn receive(
        self: Arc<Self>,
        service: String,
        source: InboundSource,
        mut first: Option<Box<dyn Incoming>>,
    ) {
        let mut failures = 0;
        let doing = source.operation();
        while !self.ctx.lifecycle.is_stopping() {
            let incoming = match first.take() {
                Some(incoming) => Ok(Some(incoming)),
                None => self.subscribe(&service, source).await,
            };
            let received = match incoming {
                Ok(Some(incoming)) => self.receive_from(incoming, &service, source, &mut failures).await,
                Ok(None) => return self.ctx.health.subscription_works(doing, &service),
                Err(error) => Err(error),
            };
            let Err(error) = received else { return };
            self.ctx.health.subscription_failed(doing, &service, &error);
            self.ctx.env.sleep(backoff_after(failures)).await;
            failures += 1;
        }
    }

    /// Subscribes; `None` if the transport keeps no dead letters. A panic of the transport is an error.
    pub(crate) async fn subscribe(
        &self,
        service: &str,
        source: InboundSource,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        let topic = service_topic(service);
        let subscribing = async {
            match source {
                InboundSource::Messages => {
                    let (name, prefetch) = (topic.clone(), self.ctx.settings.prefetch);
                    let topics = std::iter::once(topic).chain(self.validator.topics_of(service)).collect();
                    self.ctx.transport.subscribe(Subscription { name, topics, prefetch }).await.map(Some)
                }
                InboundSource::DeadLetters => self.ctx.transport.dead_letters(&topic, DEAD_LETTERS_AT_A_TIME).await,
            }
        };
        caught_while(subscribing)
            .await
            .unwrap_or_else(|panic| Err(panicked(TransportErrorKind::Unavailable, "subscribe", &panic)))
    }

    async fn receive_from(
        self: &Arc<Self>,
        mut incoming: Box<dyn Incoming>,
        service: &str,
        source: InboundSource,
        failures: &mut u32,
    ) -> Result<(), TransportError> {
        self.ctx.health.subscription_works(source.operation(), service);
        loop {
            let deliveries = tokio::select! {
                biased;
                () = self.ctx.lifecycle.stopping.cancelled() => return Ok(()),
                deliveries = caught_while(incoming.receive(STORED_AT_A_TIME)) => {
                    deliveries.unwrap_or_else(|panic| Err(panicked(TransportErrorKind::Unavailable, "receive", &panic)))?
                }
            };
            *failures = 0;
            let _under_way = self.ctx.lifecycle.enter();
            // All deliveries are settled together, so that none before a settled one stays open.
            let settled: Vec<_> = deliveries.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
            let Some(arrived) = self.accept(deliveries, service).await else { return Ok(()) };
            let settling = caught_while(incoming.settle(&settled)).await;
            // Stored messages are handled even if they are delivered again.
            self.dispatch_all(arrived).await;
            settling.unwrap_or_else(|panic| Err(panicked(TransportErrorKind::Unavailable, "settle", &panic)))?;
        }
    }

    /// Validates and authorizes deliveries. Then it handles those that take effect in one commit, stores the others, and dead-letters
    /// those that cannot be handled. Returns the stored messages; a duplicate among them has no row, and is handled again since its
    /// sender waits for a reply. `None` if the runtime stops first.
    async fn accept(self: &Arc<Self>, deliveries: Vec<Delivery>, service: &str) -> Option<Vec<InboundMessage>> {
        let (mut readable, mut fresh, mut dead_letters) = (Vec::new(), Vec::new(), Vec::new());
        if deliveries.iter().any(|delivery| delivery.message.as_ref().is_ok_and(|came| came.kind == MessageKind::Event))
        {
            self.choreography.read_clock().await;
        }
        for delivery in deliveries {
            let user = delivery.user.as_deref();
            let refused =
                delivery.message.as_ref().ok().and_then(|message| self.ctx.authorizer.check(message, user).err());
            if let Some(death) = &delivery.dead_letter {
                dead_letters.push(
                    self.dead_letters.broker_dead_letter_changes(&delivery.message, death, service, refused).await?,
                );
                continue;
            }
            if let (Ok(message), Some(detail)) = (&delivery.message, refused) {
                let problem = HandleError::Dead(DeadLetterReason::NotAuthorized, detail);
                // In the form in which a replay reads it.
                let message = match message.kind {
                    MessageKind::Event => &for_service(message.clone(), service),
                    _ => message,
                };
                dead_letters.push(self.dead_letters.dead_letter_changes(message, service, &problem).await?);
                continue;
            }
            let messages = match delivery.message {
                Ok(message) if message.kind == MessageKind::Event => self.validator.for_reactions(message, service),
                Ok(message) => vec![message],
                Err(unreadable) => {
                    dead_letters.push(self.dead_letters.unreadable_changes(&unreadable, service).await?);
                    continue;
                }
            };
            for message in messages {
                match self.validator.check(&message, service) {
                    // It may have killed its receiver, so it is stored, and its attempts are counted.
                    Ok(()) if delivery.redelivered => readable.push(message),
                    Ok(()) => fresh.push(message),
                    Err(problem) => {
                        dead_letters.push(self.dead_letters.dead_letter_changes(&message, service, &problem).await?);
                    }
                }
            }
        }
        readable.extend(self.handle_fast_path(fresh, service).await);
        let stored = self.store_all(readable, service).await?;
        // After the valid messages: an invalid one must not hold them up.
        self.dead_letters.store_dead_letters(dead_letters).await?;
        Some(stored)
    }

    async fn store_all(&self, messages: Vec<Message>, service: &str) -> Option<Vec<InboundMessage>> {
        if messages.is_empty() {
            return Some(Vec::new());
        }
        let ids = self.committer.store_calls.take_ids(messages.len()).await?;
        let received_batch =
            self.committer.store_calls.retry_store("receive", || self.store_received(&messages, ids.start)).await?;
        self.committer.store_calls.clock.set(received_batch.now, self.ctx.env.now());
        Some(arrived(messages, &received_batch, ids.start, service))
    }

    async fn store_received(&self, messages: &[Message], first_id: i64) -> Result<ReceivedBatch, StoreError> {
        let lease =
            self.committer.scheduler.membership.member().map(|owner| Lease { owner, ttl: self.ctx.settings.lease_ttl });
        let received = messages
            .iter()
            .zip(first_id..)
            .map(|(message, id)| NewReceived { work: WorkId(id), message: message.clone(), lease })
            .collect();
        self.ctx.store.receive(received).await
    }

    /// Claims unleased messages until the runtime stops: retried and replayed ones, and those of dead processes.
    pub(crate) async fn poll_inbox(self: Arc<Self>) {
        let mut failures = 0;
        let mut pause = Pause::of(self.ctx.settings.poll_interval);
        loop {
            let pausing = async {
                if failures > 0 {
                    self.ctx.env.sleep(backoff_after(failures)).await;
                } else {
                    self.ctx.env.pause(pause).await;
                }
            };
            tokio::select! {
                biased;
                () = self.ctx.lifecycle.stopping.cancelled() => return,
                () = self.committer.inbox_filled.notified() => {}
                () = pausing => {}
            }
            if !self.committer.scheduler.membership.wait_until_alive().await {
                return;
            }
            match self.claim_messages().await {
                Ok((found, due_in)) => {
                    self.ctx.health.store_works("claim_received");
                    failures = 0;
                    (pause.found, pause.due_in) = (found, due_in);
                }
                Err(error) => {
                    self.ctx.health.store_failed("claim_received", &error);
                    failures += 1;
                }
            }
        }
    }

    /// Answers whether there were messages, and when the next one is due.
    async fn claim_messages(self: &Arc<Self>) -> Result<(bool, Option<Duration>), StoreError> {
        let Some(owner) = self.committer.scheduler.membership.member() else { return Ok((false, None)) };
        let lease = Lease { owner, ttl: self.ctx.settings.lease_ttl };
        let claimed = catch_panic("claim_received", self.ctx.store.claim_received(lease, STORED_AT_A_TIME)).await?;
        let _under_way = self.ctx.lifecycle.enter();
        self.committer.store_calls.clock.set(claimed.now, self.ctx.env.now());
        log_unreadable_work(&claimed.unreadable);
        let (mut arrived, mut failed) = (Vec::new(), None);
        let mut messages = claimed.messages.into_iter();
        for message in messages.by_ref() {
            match self.begin_again(&message).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    failed = Some((message.work, error));
                    break;
                }
            }
            let (age, source) = (age(&message.message, claimed.now), source_of(&message.message));
            let inbound = InboundMessage::new(message.message, Some(message.work), age, source);
            arrived.push(inbound.tried(message.attempts, message.recovered));
        }
        let found = !arrived.is_empty();
        self.dispatch_all(arrived).await;
        let Some((work, error)) = failed else { return Ok((found, claimed.next_due_in)) };
        // The others do not wait for their leases.
        let left: Vec<WorkRef> = std::iter::once(work).chain(messages.map(|message| message.work)).collect();
        self.committer.scheduler.release(&left).await;
        Err(error)
    }

    /// Writes down that a message is tried again whose owner vanished; false if another process has it.
    async fn begin_again(&self, message: &ClaimedMessage) -> Result<bool, StoreError> {
        if !message.recovered {
            return Ok(true);
        }
        catch_panic("begin_attempt", self.ctx.store.begin_attempt(message.work, message.attempts + 1)).await
    }
}
