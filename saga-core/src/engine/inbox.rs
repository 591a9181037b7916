//! Receiving: what arrives is stored, or has taken effect, before it is acknowledged.

use std::sync::Arc;
use std::time::Duration;

use super::arrivals::InboundMessage;
use super::asking::{backoff_after, catch_panic};
use super::choreography::for_service;
use super::letters::HandleError;
use super::shared::EngineContext;
use super::step_or_item::step_or_item;
use crate::key::{Key, check_step_name};
use crate::log;
use crate::store::{
    DeadLetterReason, Lease, Message, MessageKind, NewReceived, ReceivedBatch, Store, StoreError, WorkId, WorkRef,
};
use crate::transport::{
    Delivery, Incoming, Settlement, Subscription, TransportError, TransportErrorKind, service_topic,
};
use crate::unwind::caught_while;

/// How long a start waits for the transport.
const FIRST_SUBSCRIPTION_MAX: Duration = Duration::from_secs(5);
/// How many messages are stored in one commit.
const STORED_AT_A_TIME: usize = 256;
/// How many dead letters are buried before the first of them is acknowledged.
const DEAD_LETTERS_AT_A_TIME: usize = 16;
/// By how much the content of an undo, which brings input and output, may be longer than both.
const UNDO_FRAME_BYTES: usize = 64;

/// Where a service's messages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InboundSource {
    /// What is addressed to it.
    Messages,
    /// What the transport gave up of that.
    DeadLetters,
}

impl InboundSource {
    fn in_words(self) -> &'static str {
        match self {
            Self::Messages => "receive",
            Self::DeadLetters => "receive dead letters",
        }
    }
}

impl<S: Store> EngineContext<S> {
    /// The first subscription to what is addressed to a service. A transport that cannot be reached now is tried again
    /// later.
    pub(super) async fn subscribe_first(&self, service: &str) -> Option<Box<dyn Incoming>> {
        let subscribing = self.subscribe(service, InboundSource::Messages);
        let problem = match crate::env::timeout(&*self.env, FIRST_SUBSCRIPTION_MAX, subscribing).await {
            Ok(Ok(incoming)) => return incoming,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {FIRST_SUBSCRIPTION_MAX:?}"),
        };
        log::warn!(problem, service, "what is addressed to the service is not received yet; trying again");
        None
    }

    /// Receives what is addressed to a service, or was given up of it, until the runtime stops.
    pub(super) async fn receive(
        self: Arc<Self>,
        service: String,
        inlet: InboundSource,
        mut first: Option<Box<dyn Incoming>>,
    ) {
        let mut failures = 0;
        let doing = inlet.in_words();
        while !self.is_stopping() {
            let incoming = match first.take() {
                Some(incoming) => Ok(Some(incoming)),
                None => self.subscribe(&service, inlet).await,
            };
            let received = match incoming {
                Ok(Some(incoming)) => self.receive_from(incoming, &service, inlet, &mut failures).await,
                Ok(None) => return,
                Err(error) => Err(error),
            };
            let Err(error) = received else { return };
            self.transport_failed(doing, &error);
            self.env.sleep(backoff_after(failures)).await;
            failures += 1;
        }
    }

    /// Nothing where the transport gives nothing up. A panic of the transport is an error of this call.
    async fn subscribe(
        &self,
        service: &str,
        inlet: InboundSource,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        let topic = service_topic(service);
        let subscribing = async {
            match inlet {
                InboundSource::Messages => {
                    let (name, prefetch) = (topic.clone(), self.settings.prefetch);
                    let topics = std::iter::once(topic).chain(self.topics_of(service)).collect();
                    self.transport.subscribe(Subscription { name, topics, prefetch }).await.map(Some)
                }
                InboundSource::DeadLetters => self.transport.dead_letters(&topic, DEAD_LETTERS_AT_A_TIME).await,
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
        inlet: InboundSource,
        failures: &mut u32,
    ) -> Result<(), TransportError> {
        self.transport_works(inlet.in_words());
        loop {
            let deliveries = tokio::select! {
                biased;
                () = self.stopping.cancelled() => return Ok(()),
                deliveries = caught_while(incoming.receive(STORED_AT_A_TIME)) => {
                    deliveries.unwrap_or_else(|panic| Err(panicked(TransportErrorKind::Unavailable, "receive", &panic)))?
                }
            };
            *failures = 0;
            let _under_way = self.tasks.enter();
            // All of them are settled at once, so that none below a settled one is open.
            let settled: Vec<_> = deliveries.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
            let Some(arrived) = self.accept(deliveries, service).await else { return Ok(()) };
            let settling = caught_while(incoming.settle(&settled)).await;
            // What was stored is handled, whether or not it comes again.
            self.dispatch_all(arrived).await;
            settling.unwrap_or_else(|panic| Err(panicked(TransportErrorKind::Unavailable, "settle", &panic)))?;
        }
    }

    /// Handles what takes effect in one commit, and stores the rest, as often as that takes, and buries what cannot be
    /// handled; nothing when the runtime stops first. Of what is stored, that which came before is handled again without a row: only its sender waits for it.
    async fn accept(self: &Arc<Self>, deliveries: Vec<Delivery>, service: &str) -> Option<Vec<InboundMessage>> {
        let (mut readable, mut fresh, mut burials) = (Vec::new(), Vec::new(), Vec::new());
        if deliveries.iter().any(|delivery| delivery.message.as_ref().is_ok_and(|came| came.kind == MessageKind::Event))
        {
            self.read_clock().await;
        }
        for delivery in deliveries {
            let user = delivery.user.as_deref();
            let refused = delivery.message.as_ref().ok().and_then(|message| self.authorizer.check(message, user).err());
            if let Some(death) = &delivery.dead_letter {
                burials.push(self.broker_dead_letter_changes(&delivery.message, death, service, refused).await?);
                continue;
            }
            if let (Ok(message), Some(detail)) = (&delivery.message, refused) {
                let problem = HandleError::Dead(DeadLetterReason::NotAuthorized, detail);
                // As it is read again when a person replays the letter.
                let message = match message.kind {
                    MessageKind::Event => &for_service(message.clone(), service),
                    _ => message,
                };
                burials.push(self.dead_letter_changes(message, service, &problem).await?);
                continue;
            }
            let messages = match delivery.message {
                Ok(message) if message.kind == MessageKind::Event => self.meant_by(message, service),
                Ok(message) => vec![message],
                Err(unreadable) => {
                    burials.push(self.unreadable_changes(&unreadable, service).await?);
                    continue;
                }
            };
            for message in messages {
                match self.check(&message, service) {
                    // What its receiver may have died of is stored, so that its attempts are counted.
                    Ok(()) if delivery.redelivered => readable.push(message),
                    Ok(()) => fresh.push(message),
                    Err(problem) => burials.push(self.dead_letter_changes(&message, service, &problem).await?),
                }
            }
        }
        readable.extend(self.handle_fast_path(fresh, service).await);
        let stored = self.store_all(readable, service).await?;
        // Behind the good ones: what somebody sends in error holds up nobody else.
        self.store_dead_letters(burials).await?;
        Some(stored)
    }

    async fn store_all(&self, messages: Vec<Message>, service: &str) -> Option<Vec<InboundMessage>> {
        if messages.is_empty() {
            return Some(Vec::new());
        }
        let ids = self.take_ids(messages.len()).await?;
        let receipt = self.retry_store("receive", || self.store_received(&messages, ids.start)).await?;
        self.store_clock.set(receipt.now, self.env.now());
        Some(arrived(messages, &receipt, ids.start, service))
    }

    async fn store_received(&self, messages: &[Message], first_id: i64) -> Result<ReceivedBatch, StoreError> {
        let lease = self.member().map(|owner| Lease { owner, ttl: self.settings.lease_ttl });
        let received = messages
            .iter()
            .zip(first_id..)
            .map(|(message, id)| NewReceived { work: WorkId(id), message: message.clone(), lease })
            .collect();
        self.store.receive(received).await
    }

    /// Whether a message can be handled at all. What needs the store is looked at later.
    pub(super) fn check(&self, message: &Message, service: &str) -> Result<(), HandleError> {
        let dead = |reason, detail: String| Err(HandleError::Dead(reason, detail));
        let (bytes, max) = (message.payload.len(), self.bytes_max(message.kind));
        if bytes > max {
            return dead(DeadLetterReason::TooLarge, format!("it has {bytes} bytes; at most {max} are taken"));
        }
        if let Some(tenants) = &self.settings.tenants
            && !tenants.contains(&message.tenant)
        {
            return dead(DeadLetterReason::OtherTenant, format!("the tenant `{}` is not served here", message.tenant));
        }
        match message.kind {
            MessageKind::Event => return self.check_event(message, service),
            MessageKind::Fact => return self.check_fact(message, service),
            MessageKind::Command | MessageKind::Undo | MessageKind::Reply | MessageKind::Report => {}
        }
        let headers = &message.headers;
        let missing = |name| dead(DeadLetterReason::Unreadable, format!("the header `{name}` is missing"));
        let Some(key) = &headers.saga_key else { return missing("saga-cause") };
        let Some(step) = &headers.step else { return missing("saga-step") };
        let name = match Key::from_message(key).map_err(|problem| problem.to_string()).and_then(|_| step_or_item(step))
        {
            Ok((name, _)) => name,
            Err(problem) => return dead(DeadLetterReason::Unreadable, problem),
        };
        match message.kind {
            MessageKind::Reply | MessageKind::Report if headers.correlation.is_none() => missing("saga-correlation"),
            MessageKind::Reply if headers.answer.is_none() => missing("saga-answer"),
            MessageKind::Reply | MessageKind::Report | MessageKind::Event | MessageKind::Fact => Ok(()),
            MessageKind::Command | MessageKind::Undo => {
                let Some(reply_to) = &headers.reply_to else { return missing("saga-reply-to") };
                if let Err(problem) = check_step_name(reply_to) {
                    return dead(DeadLetterReason::Unreadable, format!("in the header `saga-reply-to` {problem}"));
                }
                let addressed = headers.service.as_deref().unwrap_or(service);
                if addressed != service || self.hosted(service, name).is_none() {
                    let detail = format!("the step `{step}` of the service `{addressed}` is not hosted here");
                    return dead(DeadLetterReason::UnknownStep, detail);
                }
                Ok(())
            }
        }
    }

    /// How long the content of a message may be.
    pub(super) fn bytes_max(&self, kind: MessageKind) -> usize {
        let max = self.settings.payload_bytes_max;
        if kind == MessageKind::Undo { 2 * max + UNDO_FRAME_BYTES } else { max }
    }

    /// Claims messages that nobody has, until the runtime stops: those that are tried again or were replayed, and what
    /// dead processes left behind.
    pub(super) async fn poll_inbox(self: Arc<Self>) {
        let mut failures = 0;
        let mut forget_at = self.env.now().saturating_add(self.settings.retention / RETENTION_SHARE);
        loop {
            let pause = if failures > 0 { backoff_after(failures) } else { self.settings.poll_interval };
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return,
                () = self.inbox_filled.notified() => {}
                () = self.env.sleep(pause) => {}
            }
            if !self.wait_until_alive().await {
                return;
            }
            match self.claim_messages().await {
                Ok(()) => {
                    self.store_works("claim_received");
                    failures = 0;
                }
                Err(error) => {
                    self.store_failed("claim_received", &error);
                    failures += 1;
                }
            }
            if self.env.now() >= forget_at {
                forget_at = self.env.now().saturating_add(self.settings.retention / RETENTION_SHARE);
                self.forget_ids().await;
            }
        }
    }

    async fn claim_messages(self: &Arc<Self>) -> Result<(), StoreError> {
        let Some(owner) = self.member() else { return Ok(()) };
        let lease = Lease { owner, ttl: self.settings.lease_ttl };
        let claimed = catch_panic("claim_received", self.store.claim_received(lease, STORED_AT_A_TIME)).await?;
        let _under_way = self.tasks.enter();
        self.store_clock.set(claimed.now, self.env.now());
        let mut arrived = Vec::new();
        for message in claimed.messages {
            if message.recovered && !self.store.begin_attempt(message.work, message.attempts + 1).await? {
                continue;
            }
            let attempts = message.attempts + u32::from(message.recovered);
            arrived.push(InboundMessage {
                age: age(&message.message, claimed.now),
                source: source_of(&message.message),
                message: message.message,
                work: Some(message.work),
                attempts,
            });
        }
        self.dispatch_all(arrived).await;
        Ok(())
    }

    /// Forgets all ids that are old enough, some at a time.
    async fn forget_ids(&self) {
        while !self.is_stopping() {
            let forgetting = self.store.forget_received(self.settings.retention, FORGOTTEN_AT_A_TIME);
            match catch_panic("forget_received", forgetting).await {
                Ok(forgotten) if forgotten >= FORGOTTEN_AT_A_TIME as u64 => {}
                Ok(_) => return,
                Err(error) => return log::warn!(%error, "old message ids could not be forgotten"),
            }
        }
    }
}

/// How often old ids are looked for while one of them is kept.
const RETENTION_SHARE: u32 = 720;
/// How many ids are forgotten at a time.
const FORGOTTEN_AT_A_TIME: usize = 10_000;

fn arrived(messages: Vec<Message>, receipt: &ReceivedBatch, first_id: i64, service: &str) -> Vec<InboundMessage> {
    let rows = receipt.new.iter().zip(first_id..);
    let arrived = |(message, (is_new, id)): (Message, (&bool, i64))| InboundMessage {
        age: age(&message, receipt.now),
        message,
        work: is_new.then_some(WorkRef { id: WorkId(id), epoch: 1 }),
        attempts: 0,
        source: service.to_owned(),
    };
    messages.into_iter().zip(rows).map(arrived).collect()
}

pub(super) fn panicked(kind: TransportErrorKind, operation: &'static str, panic: &str) -> TransportError {
    TransportError::new(kind, operation, format!("the transport panicked: {panic}"))
}

/// How long ago a message was committed; nothing where that lies ahead.
pub(super) fn age(message: &Message, now: crate::store::Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(now.0.saturating_sub(message.committed_at.0)).unwrap_or(0))
}

/// The service that a stored message was received for.
fn source_of(message: &Message) -> String {
    match &message.headers.service {
        // It was published for anybody, and came for this one.
        Some(service) if message.kind == MessageKind::Event => service.clone(),
        _ => message.topic.strip_prefix("service:").unwrap_or(&message.topic).to_owned(),
    }
}
