//! Sends the command of a remote step again when its reply is late.

use std::sync::Arc;

use super::coordinator::Coordinator;
use crate::engine::commit::changes;
use crate::engine::instance::{TakenWork, WorkItem};
use crate::log;
use crate::store::{Changes, Postponed, Store};

/// The wait for a reply doubles with each attempt, up to this many times.
pub(crate) const DOUBLINGS_MAX: u32 = 5;

impl<S: Store> Coordinator<S> {
    /// Sends a command without a reply again, or one that was never sent.
    pub(crate) fn resend(self: &Arc<Self>, command: WorkItem<S>) {
        let (this, under_way) = (Arc::clone(self), self.ctx.lifecycle.enter());
        self.ctx.lifecycle.spawn(
            "send again",
            Box::pin(async move {
                let sending = async {
                    let changes = this.resend_changes(&command);
                    let due_in = changes.postponed.first().map(|postponed| postponed.due_in);
                    match this.committer.recorder.record(changes).await {
                        Ok(Ok(())) => {
                            this.committer.outbox.wake_relay();
                            this.committer.scheduler.announce_work(due_in.unwrap_or_default());
                        }
                        // The reply arrived meanwhile, or another process has the command.
                        Ok(Err(_)) => {}
                        Err(_) => this.committer.scheduler.release(&[command.work]).await,
                    }
                };
                this.committer.watch_over("send again", &[TakenWork::of(&command)], sending).await;
                drop((command, under_way));
            }),
        );
    }

    fn resend_changes(&self, command: &WorkItem<S>) -> Changes {
        let attempts = command.attempts + 1;
        let was_sent = command.attempts > 0 || command.work.times_taken() > 0;
        let due_in = self.ctx.settings.reply_timeout.saturating_mul(1 << command.attempts.min(DOUBLINGS_MAX));
        if command.attempts > 0 {
            let (tenant, saga, step) = (command.saga.tenant.as_str(), &command.saga.key, command.step_id());
            log::info!(tenant, %saga, %step, attempt = attempts, "command sent again");
        }
        let error = was_sent.then(|| format!("no reply yet; it was sent {attempts} times"));
        let postponed = Postponed { work: command.work, due_in, attempts, in_doubt: true, error };
        let messages = self.messages.command_message(&command.saga, command.command).into_iter().collect();
        changes::resend(postponed, messages)
    }
}
