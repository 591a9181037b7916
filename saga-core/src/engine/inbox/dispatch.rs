//! Hands stored messages to the components that handle them.

use std::pin::pin;
use std::sync::Arc;

use super::inbox::Inbox;
use crate::engine::commit::changes;
use crate::engine::lifecycle::backoff_after;
use crate::engine::message::{Closed, HandleError, InboundMessage, closed_content};
use crate::log;
use crate::store::{DeadLetterReason, MessageKind, Postponed, Store};
use crate::unwind::caught_while;

impl<S: Store> Inbox<S> {
    /// Handles messages concurrently, at most `MESSAGES_AT_A_TIME`.
    pub(crate) async fn dispatch_all(self: &Arc<Self>, arrived: Vec<InboundMessage>) {
        for arrived in arrived {
            // The semaphore is never closed.
            let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { return };
            let (this, under_way) = (Arc::clone(self), self.ctx.lifecycle.enter());
            self.ctx.lifecycle.spawn(
                "message",
                Box::pin(async move {
                    if let Err(panic) = caught_while(pin!(this.dispatch(&arrived))).await {
                        this.ctx.lifecycle.has_panicked("messages", &panic);
                        this.postpone_message(&arrived, &format!("the runtime panicked: {panic}"), true).await;
                    }
                    drop((permit, under_way));
                }),
            );
        }
    }

    async fn dispatch(self: &Arc<Self>, arrived: &InboundMessage) {
        let handled = match arrived.message.kind {
            _ if arrived.attempts_max() >= self.ctx.settings.message_attempts => Err(HandleError::Dead(
                DeadLetterReason::OutOfAttempts,
                format!("it was tried {} times", arrived.attempts_max()),
            )),
            MessageKind::Command => self.host.handle_command(arrived).await,
            MessageKind::Undo => self.host.handle_undo(arrived).await,
            // A duplicate was handled, or is about to be.
            _ if arrived.work.is_none() => Ok(()),
            MessageKind::Reply => self.coordinator.handle_reply(arrived).await,
            MessageKind::Report => self.coordinator.handle_report(arrived).await,
            MessageKind::Closed => self.handle_closed(arrived).await,
            MessageKind::Fact => self.choreography.handle_fact(arrived).await,
            MessageKind::Event => self.choreography.handle_event(arrived).await,
        };
        match handled {
            Ok(()) => {}
            Err(HandleError::Dead(reason, detail)) => {
                let problem = HandleError::Dead(reason, detail);
                if let Err(HandleError::Later { why, .. }) =
                    self.dead_letters.dead_letter_handled(arrived, &problem).await
                {
                    self.postpone_message(arrived, &why, false).await;
                }
            }
            Err(HandleError::Later { why, is_counted }) => self.postpone_message(arrived, &why, is_counted).await,
        }
    }

    /// A message that closes sagas is for the host of their steps, and a question about sagas is for their coordinator.
    async fn handle_closed(&self, arrived: &InboundMessage) -> Result<(), HandleError> {
        let undecodable = |error| HandleError::Dead(DeadLetterReason::Undecodable, format!("its content: {error}"));
        match closed_content(&arrived.message.payload).map_err(undecodable)? {
            Closed::Sagas { keys, asked_at } => self.host.handle_closed(arrived, keys, asked_at).await,
            Closed::Asked(sagas) => self.coordinator.answer_closed(arrived, &sagas).await,
        }
    }

    /// Leaves the message in its row, to be handled again later.
    async fn postpone_message(&self, arrived: &InboundMessage, why: &str, is_counted: bool) {
        let Some(work) = arrived.work else { return };
        let id = arrived.message.id;
        log::info!(message_id = %id, attempt = arrived.attempts, reason = why, "message postponed");
        let attempts = arrived.attempts + u32::from(is_counted);
        let due_in = backoff_after(attempts.max(1)).max(self.ctx.settings.poll_interval);
        let postponed = Postponed { work, due_in, attempts, in_doubt: false, error: Some(why.to_owned()) };
        let postponed = changes::postpone(postponed);
        if self.committer.recorder.record(postponed).await.is_err() {
            self.committer.scheduler.release(&[work]).await;
        }
    }
}
