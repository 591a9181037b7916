//! Commands of a worker that panicked. Its own steps cannot make it panic, so that this is a bug: of the engine, the store or
//! the environment. The attempt is counted, and the command is tried again after a pause.

use std::sync::Arc;

use super::changes;
use super::committer::Committer;
use crate::engine::instance::TakenWork;
use crate::engine::lifecycle::backoff_after;
use crate::log;
use crate::store::{Postponed, Store};
use crate::unwind::caught_while;

impl<S: Store> Committer<S> {
    /// Does something with commands. If that panics, what is left of them is put back.
    pub(crate) async fn watch_over(
        self: &Arc<Self>,
        doing: &'static str,
        taken: &[TakenWork],
        task: impl Future<Output = ()>,
    ) {
        if let Err(panic) = caught_while(task).await {
            self.ctx.lifecycle.has_panicked(doing, &panic);
            self.put_back(taken, &panic).await;
        }
    }

    /// Releases commands that no worker runs any more. A command that was recorded before has no row by now.
    pub(crate) async fn put_back(&self, taken: &[TakenWork], panic: &str) {
        for taken in taken {
            let put_back = caught_while(self.put_back_one(*taken, panic));
            if let Err(panic) = put_back.await {
                log::error!(work_id = taken.work.id.0, panic, "command not put back");
            }
        }
    }

    async fn put_back_one(&self, taken: TakenWork, panic: &str) {
        let attempts = taken.attempts + 1;
        let postponed = Postponed {
            work: taken.work,
            due_in: backoff_after(attempts).max(self.ctx.settings.poll_interval),
            attempts,
            in_doubt: taken.in_doubt,
            error: Some(format!("the runtime panicked: {panic}")),
        };
        let due_in = postponed.due_in;
        let changes = changes::postpone(postponed);
        let mut backoff = self.store_calls.backoff(0);
        loop {
            match self.recorder.record(changes.clone()).await {
                Ok(applied) => {
                    if applied.is_ok() {
                        self.scheduler.announce_work(due_in);
                    }
                    return;
                }
                Err(_) if self.ctx.lifecycle.has_stopped() => return,
                Err(_) => self.store_calls.pause_for_store(&mut backoff).await,
            }
        }
    }
}
