//! Commands of a worker that panicked. Its own steps cannot make it panic, so that this is a bug: of the engine, the store or
//! the environment. The attempt is counted, and the command is tried again after a pause.

use std::sync::Arc;

use super::asking::backoff_after;
use super::command::WorkItem;
use super::shared::EngineContext;
use crate::log;
use crate::store::{Changes, ClaimedWork, Postponed, Store, WorkRef};
use crate::unwind::caught_while;

/// What is known of a command that a worker took.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakenWork {
    pub(super) work: WorkRef,
    attempts: u32,
    /// Whether its effect may have happened outside when the worker panics.
    maybe: bool,
}

impl TakenWork {
    pub(super) fn of<S: Store>(command: &WorkItem<S>) -> Self {
        let maybe = command.in_doubt || command.effect().is_outside();
        Self { work: command.work, attempts: command.attempts, maybe }
    }
}

impl TakenWork {
    /// A command that was just claimed, and has not begun.
    pub(super) fn claimed(claimed: &ClaimedWork) -> Self {
        Self { work: claimed.work, attempts: claimed.attempts, maybe: claimed.in_doubt || claimed.recovered }
    }
}

impl<S: Store> EngineContext<S> {
    /// Does something with commands. If that panics, what is left of them is put back.
    pub(super) async fn watch_over(
        self: &Arc<Self>,
        doing: &'static str,
        taken: &[TakenWork],
        task: impl Future<Output = ()>,
    ) {
        if let Err(panic) = caught_while(task).await {
            self.has_panicked(doing, &panic);
            self.put_back(taken, &panic).await;
        }
    }

    /// Puts commands back that nobody works on any more. What was recorded before is recorded, and has no row by now.
    pub(super) async fn put_back(&self, taken: &[TakenWork], panic: &str) {
        for taken in taken {
            let put_back = caught_while(self.put_back_one(*taken, panic));
            if let Err(panic) = put_back.await {
                log::error!(
                    work = taken.work.id.0,
                    panic,
                    "a command could not be put back; it waits for the end of its lease"
                );
            }
        }
    }

    async fn put_back_one(&self, taken: TakenWork, panic: &str) {
        let attempts = taken.attempts + 1;
        let postponed = Postponed {
            work: taken.work,
            due_in: backoff_after(attempts).max(self.settings.poll_interval),
            attempts,
            in_doubt: taken.maybe,
            error: Some(format!("the runtime panicked: {panic}")),
        };
        let due_in = postponed.due_in;
        let changes = Changes { postponed: vec![postponed], ..Changes::default() };
        let mut backoff = self.backoff(0);
        loop {
            match self.recorder.record(changes.clone()).await {
                Ok(applied) => {
                    if applied.is_ok() {
                        self.announce_work(due_in);
                    }
                    return;
                }
                Err(_) if self.has_stopped() => return,
                Err(_) => self.pause_for_store(&mut backoff).await,
            }
        }
    }
}
