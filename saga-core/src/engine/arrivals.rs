//! Handling a message that was stored.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::asking::pause_after;
use super::letters::Problem;
use super::recorder::RecordError;
use super::shared::Shared;
use crate::log;
use crate::store::{Changes, Condition, DeadReason, Message, MessageKind, Postponed, Store, StoreError, WorkRef};
use crate::unwind::caught_while;

/// A message that is handled now.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) message: Message,
    /// Its row; none for one that came before.
    pub(super) work: Option<WorkRef>,
    /// How long ago it was committed.
    pub(super) age: Duration,
    pub(super) attempts: u32,
    /// The service that it was received for.
    pub(super) source: String,
}

impl Arrived {
    /// The changes with which the message has been handled.
    pub(super) fn handled(&self, changes: Changes) -> Changes {
        let mut changes = changes;
        changes.finished.extend(self.work.map(|work| (work, Condition::Held)));
        changes
    }
}

impl<S: Store> Shared<S> {
    /// Handles messages side by side, a bounded number at a time.
    pub(super) async fn handle_all(self: &Arc<Self>, arrived: Vec<Arrived>) {
        for arrived in arrived {
            // The semaphore is never closed.
            let Ok(line) = Arc::clone(&self.inbox_lines).acquire_owned().await else { return };
            let (shared, under_way) = (Arc::clone(self), self.tasks.enter());
            self.spawn(
                "message",
                Box::pin(async move {
                    if let Err(panic) = caught_while(pin!(shared.handle(&arrived))).await {
                        shared.has_panicked("messages", &panic);
                        shared.try_later(&arrived, &format!("the runtime panicked: {panic}"), true).await;
                    }
                    drop((line, under_way));
                }),
            );
        }
    }

    async fn handle(self: &Arc<Self>, arrived: &Arrived) {
        let handled = match arrived.message.kind {
            _ if arrived.attempts >= self.settings.message_attempts => {
                Err(Problem::Dead(DeadReason::OutOfAttempts, format!("it was tried {} times", arrived.attempts)))
            }
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
            Err(Problem::Dead(reason, detail)) => {
                let problem = Problem::Dead(reason, detail);
                if let Err(Problem::Later { why, .. }) = self.bury_handled(arrived, &problem).await {
                    self.try_later(arrived, &why, false).await;
                }
            }
            Err(Problem::Later { why, is_counted }) => self.try_later(arrived, &why, is_counted).await,
        }
    }

    /// The message stays in its row, and falls due again.
    async fn try_later(&self, arrived: &Arrived, why: &str, is_counted: bool) {
        let Some(work) = arrived.work else { return };
        let id = arrived.message.id;
        log::info!(message = %id, why, attempts = arrived.attempts, "a message waits");
        let attempts = arrived.attempts + u32::from(is_counted);
        let due_in = pause_after(attempts.max(1)).max(self.settings.poll_interval);
        let postponed = Postponed { work, due_in, attempts, maybe: false, error: Some(why.to_owned()) };
        let postponed = Changes { postponed: vec![postponed], ..Changes::default() };
        if self.recorder.record(postponed).await.is_err() {
            self.give_back(&[work]).await;
        }
    }
}

/// A fault of the store is nobody's: the message waits, and no attempt is counted.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::Later { why: error.to_string(), is_counted: false }
    }
}

impl From<RecordError> for Problem {
    fn from(error: RecordError) -> Self {
        Self::Later { why: error.to_string(), is_counted: false }
    }
}
