//! Handles messages whose whole effect is one commit without a row of their own: they are acknowledged after that commit.
//!
//! These are replies, reports, and commands for steps that are known to be quick. Each may arrive twice, and takes effect once. A
//! message that cannot be handled like this, or not in time, is stored like all others.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::inbox::Inbox;
use crate::engine::message::{InboundMessage, age};
use crate::env::timeout;
use crate::store::{Message, MessageKind, Store};

/// How long the acknowledgement waits for the effect. A message that takes longer is stored.
const FAST_PATH_MAX: Duration = Duration::from_millis(500);

impl<S: Store> Inbox<S> {
    /// Handles messages that were not redelivered. Returns those that must be stored.
    pub(crate) async fn handle_fast_path(self: &Arc<Self>, messages: Vec<Message>, service: &str) -> Vec<Message> {
        let Some(now) = self
            .committer
            .store_calls
            .clock
            .now(self.ctx.env.now())
            .filter(|_| self.committer.scheduler.membership.member().is_some())
        else {
            return messages;
        };
        let (mut to_store, mut under_way) = (Vec::new(), Vec::new());
        for message in messages {
            let is_fast = match message.kind {
                MessageKind::Reply | MessageKind::Report | MessageKind::Command | MessageKind::Fact => true,
                MessageKind::Event => self.validator.runs_step(&message, service),
                MessageKind::Undo | MessageKind::Closed => false,
            };
            if !is_fast {
                to_store.push(message);
                continue;
            }
            let age = age(&message, now);
            let arrived = Arc::new(InboundMessage::new(message, None, age, service.to_owned()));
            under_way.push((self.spawn_fast_path(&arrived), arrived));
        }
        let end = self.ctx.env.now().saturating_add(FAST_PATH_MAX);
        for (handled, arrived) in under_way {
            let left = end.saturating_sub(self.ctx.env.now());
            if timeout(&*self.ctx.env, left, handled).await != Ok(Ok(true)) {
                to_store.push(arrived.message.clone());
            }
        }
        to_store
    }

    /// Handles a message in a task of its own, which says whether the message is done.
    fn spawn_fast_path(self: &Arc<Self>, arrived: &Arc<InboundMessage>) -> oneshot::Receiver<bool> {
        let (answer, answered) = oneshot::channel();
        let (this, arrived, under_way) = (Arc::clone(self), Arc::clone(arrived), self.ctx.lifecycle.enter());
        self.ctx.lifecycle.spawn(
            "message",
            Box::pin(async move {
                let is_handled = match arrived.message.kind {
                    MessageKind::Reply => this.coordinator.handle_reply(&arrived).await.is_ok(),
                    MessageKind::Report => this.coordinator.handle_report(&arrived).await.is_ok(),
                    MessageKind::Fact => this.choreography.handle_fact(&arrived).await.is_ok(),
                    _ => this.start_inline(&arrived).await,
                };
                // If the receiver is gone, the message was stored.
                _ = answer.send(is_handled);
                drop(under_way);
            }),
        );
        answered
    }

    /// Starts the step of a command or an event in the transaction that runs it.
    async fn start_inline(&self, arrived: &InboundMessage) -> bool {
        let asked = match arrived.message.kind {
            MessageKind::Event => self.choreography.request_of_event(arrived).await,
            _ => self.host.request_of(arrived),
        };
        match asked {
            Ok(asked) => self.host.start_inline(asked, arrived).await,
            Err(_) => false,
        }
    }
}
