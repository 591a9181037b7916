//! Handling a message that was stored.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::asking::backoff_after;
use super::letters::HandleError;
use super::recorder::RecordError;
use super::shared::EngineContext;
use crate::log;
use crate::store::{Changes, Condition, DeadLetterReason, Message, MessageKind, Postponed, Store, StoreError, WorkRef};
use crate::unwind::caught_while;

/// A message that is handled now.
#[derive(Debug)]
pub(super) struct InboundMessage {
    pub(super) message: Message,
    /// Its row; none for one that came before.
    pub(super) work: Option<WorkRef>,
    /// How long ago it was committed.
    pub(super) age: Duration,
    pub(super) attempts: u32,
    /// The service that it was received for.
    pub(super) source: String,
}

impl InboundMessage {
    /// The changes with which the message has been handled.
    pub(super) fn handled(&self, changes: Changes) -> Changes {
        let mut changes = changes;
        changes.finished.extend(self.work.map(|work| (work, Condition::Held)));
        changes
    }
}

impl<S: Store> EngineContext<S> {
    /// Handles messages side by side, a bounded number at a time.
    pub(super) async fn dispatch_all(self: &Arc<Self>, arrived: Vec<InboundMessage>) {
        for arrived in arrived {
            // The semaphore is never closed.
            let Ok(line) = Arc::clone(&self.inbox_permits).acquire_owned().await else { return };
            let (shared, under_way) = (Arc::clone(self), self.tasks.enter());
            self.spawn(
                "message",
                Box::pin(async move {
                    if let Err(panic) = caught_while(pin!(shared.dispatch(&arrived))).await {
                        shared.has_panicked("messages", &panic);
                        shared.postpone_message(&arrived, &format!("the runtime panicked: {panic}"), true).await;
                    }
                    drop((line, under_way));
                }),
            );
        }
    }

    async fn dispatch(self: &Arc<Self>, arrived: &InboundMessage) {
        let handled = match arrived.message.kind {
            _ if arrived.attempts >= self.settings.message_attempts => Err(HandleError::Dead(
                DeadLetterReason::OutOfAttempts,
                format!("it was tried {} times", arrived.attempts),
            )),
            MessageKind::Command => self.handle_command(arrived).await,
            MessageKind::Undo => self.handle_undo(arrived).await,
            // One that came before was handled, or is about to be.
            _ if arrived.work.is_none() => Ok(()),
            MessageKind::Reply => self.handle_reply(arrived).await,
            MessageKind::Report => self.handle_report(arrived).await,
            MessageKind::Fact => self.handle_fact(arrived).await,
            MessageKind::Event => self.handle_event(arrived).await,
        };
        match handled {
            Ok(()) => {}
            Err(HandleError::Dead(reason, detail)) => {
                let problem = HandleError::Dead(reason, detail);
                if let Err(HandleError::Later { why, .. }) = self.dead_letter_handled(arrived, &problem).await {
                    self.postpone_message(arrived, &why, false).await;
                }
            }
            Err(HandleError::Later { why, is_counted }) => self.postpone_message(arrived, &why, is_counted).await,
        }
    }

    /// The message stays in its row, and falls due again.
    async fn postpone_message(&self, arrived: &InboundMessage, why: &str, is_counted: bool) {
        let Some(work) = arrived.work else { return };
        let id = arrived.message.id;
        log::info!(message = %id, why, attempts = arrived.attempts, "a message waits");
        let attempts = arrived.attempts + u32::from(is_counted);
        let due_in = backoff_after(attempts.max(1)).max(self.settings.poll_interval);
        let postponed = Postponed { work, due_in, attempts, in_doubt: false, error: Some(why.to_owned()) };
        let postponed = Changes { postponed: vec![postponed], ..Changes::default() };
        if self.recorder.record(postponed).await.is_err() {
            self.release(&[work]).await;
        }
    }
}

/// A fault of the store is nobody's: the message waits, and no attempt is counted.
impl From<StoreError> for HandleError {
    fn from(error: StoreError) -> Self {
        Self::Later { why: error.to_string(), is_counted: false }
    }
}

impl From<RecordError> for HandleError {
    fn from(error: RecordError) -> Self {
        Self::Later { why: error.to_string(), is_counted: false }
    }
}
