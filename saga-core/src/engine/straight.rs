//! Messages whose whole effect is one commit: they need no row of their own before it, and are acknowledged behind it.
//!
//! A reply moves its saga, or finds it moved; a report is kept, or is about what is over. A command for a step that is known to be quick begins it and runs it in one
//! transaction, or finds its step key taken. Either may come twice, and takes effect once. Whatever does not end so, and
//! in time, is stored like everything else that arrives.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::arrivals::InboundMessage;
use super::inbox::age;
use super::shared::EngineContext;
use crate::env::timeout;
use crate::store::{Message, MessageKind, Store, Timestamp};

/// How long the acknowledgement waits for an effect. What takes longer is stored.
const STRAIGHT_MAX: Duration = Duration::from_millis(500);
/// How long a reading of the store's clock is carried on by the clock of this process.
const READING_TRUSTED: Duration = Duration::from_mins(1);

/// The clock of the store, as it was read last.
#[derive(Debug, Default)]
pub(super) struct StoreClock(Mutex<Option<Reading>>);

#[derive(Debug, Clone, Copy)]
struct Reading {
    /// What it said.
    said: Timestamp,
    /// When it said so, by the clock of this process.
    at: Duration,
}

impl StoreClock {
    pub(super) fn set(&self, said: Timestamp, at: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Reading { said, at });
    }

    /// What it says now, if it was read lately.
    pub(super) fn now(&self, now: Duration) -> Option<Timestamp> {
        let reading = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let since = now.saturating_sub(reading.at);
        let micros = i64::try_from(since.as_micros()).ok().filter(|_| since <= READING_TRUSTED)?;
        Some(Timestamp(reading.said.0.saturating_add(micros)))
    }
}

impl<S: Store> EngineContext<S> {
    /// Handles messages that came for the first time. Answers those that are to be stored.
    pub(super) async fn handle_fast_path(self: &Arc<Self>, messages: Vec<Message>, service: &str) -> Vec<Message> {
        let Some(now) = self.store_clock.now(self.env.now()).filter(|_| self.member().is_some()) else {
            return messages;
        };
        let (mut to_store, mut under_way) = (Vec::new(), Vec::new());
        for message in messages {
            let is_straight = match message.kind {
                MessageKind::Reply | MessageKind::Report | MessageKind::Command | MessageKind::Fact => true,
                MessageKind::Event => self.is_run_by(&message, service),
                MessageKind::Undo => false,
            };
            if !is_straight {
                to_store.push(message);
                continue;
            }
            let age = age(&message, now);
            let arrived =
                Arc::new(InboundMessage { message, work: None, age, attempts: 0, source: service.to_owned() });
            under_way.push((self.spawn_fast_path(&arrived), arrived));
        }
        let end = self.env.now().saturating_add(STRAIGHT_MAX);
        for (handled, arrived) in under_way {
            let left = end.saturating_sub(self.env.now());
            if timeout(&*self.env, left, handled).await != Ok(Ok(true)) {
                to_store.push(arrived.message.clone());
            }
        }
        to_store
    }

    /// Handles a message in a task of its own, which says whether that was all.
    fn spawn_fast_path(self: &Arc<Self>, arrived: &Arc<InboundMessage>) -> oneshot::Receiver<bool> {
        let (answer, answered) = oneshot::channel();
        let (shared, arrived, under_way) = (Arc::clone(self), Arc::clone(arrived), self.tasks.enter());
        self.spawn(
            "message",
            Box::pin(async move {
                let is_handled = match arrived.message.kind {
                    MessageKind::Reply => shared.handle_reply(&arrived).await.is_ok(),
                    MessageKind::Report => shared.handle_report(&arrived).await.is_ok(),
                    MessageKind::Fact => shared.handle_fact(&arrived).await.is_ok(),
                    _ => shared.begin_at_once(&arrived).await,
                };
                // Who waited too long has stored it.
                _ = answer.send(is_handled);
                drop(under_way);
            }),
        );
        answered
    }
}
