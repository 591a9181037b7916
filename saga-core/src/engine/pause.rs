//! What the engine does itself for a step that only waits: its row falls due later, and then the step is done.

use std::sync::Arc;
use std::time::Duration;

use super::attempt::Attempted;
use super::command::{Command, InFlight};
use super::prepared::Findings;
use super::shared::Shared;
use crate::machine::{self, Ending, Event, Next};
use crate::saga::{Pause, StepDefinition, StepRun};
use crate::store::{Changes, Postponed, Store, StoreError, Timestamp};

/// What a step returns that only waited.
const NOTHING: &[u8] = b"null";

/// How long a step waits from when its turn has come, if it is one that only waits.
///
/// A moment is compared with the store's clock, which is read when the row is claimed: that is at once.
pub(super) fn pause_of<S: Store>(step: &StepDefinition<S>, input: &[u8]) -> Option<Duration> {
    let StepRun::Pause(pause) = &step.run else { return None };
    Some(match pause {
        Pause::For(duration) => *duration,
        Pause::Mapped => serde_json::from_slice(input).unwrap_or_default(),
        Pause::Until => Duration::ZERO,
    })
}

impl<S: Store> InFlight<S> {
    /// How long the command waits before it is due, if it is one that only waits.
    pub(super) fn pause_of(&self, order: machine::Command) -> Option<Duration> {
        let machine::Command::Do { step } = order else { return None };
        pause_of(self.definition.steps.get(step)?, self.input_of(step))
    }
}

impl<S: Store> Shared<S> {
    /// The row of a step that only waits is claimed.
    pub(super) async fn end_pause(self: &Arc<Self>, command: Command<S>, pause: &Pause, next_ids: i64) {
        let left = match pause {
            Pause::For(_) | Pause::Mapped => Ok(Duration::ZERO),
            Pause::Until => self.time_until(&command).await,
        };
        match left {
            Ok(Duration::ZERO) => self.awake(command, next_ids).await,
            Ok(left) => self.sleep_on(command, left).await,
            Err(error) => {
                self.store_failed("now", &error);
                self.give_back(&[command.work]).await;
            }
        }
    }

    /// How long it is until the moment that was written down with the command.
    async fn time_until(&self, command: &Command<S>) -> Result<Duration, StoreError> {
        // The engine wrote it, so that it can be read.
        let moment: Timestamp = serde_json::from_slice(command.saga.input_of(command.step_index())).unwrap_or_default();
        let now = self.store.now().await?;
        self.store_works("now");
        Ok(Duration::from_micros(u64::try_from(moment.0.saturating_sub(now.0)).unwrap_or_default()))
    }

    async fn sleep_on(&self, command: Command<S>, due_in: Duration) {
        let postponed = Postponed { work: command.work, due_in, attempts: 0, maybe: false, error: None };
        match self.recorder.record(Changes { postponed: vec![postponed], ..Changes::default() }).await {
            Ok(Ok(())) => self.announce_work(due_in),
            // Somebody else has it.
            Ok(Err(_)) => {}
            Err(_) => self.give_back(&[command.work]).await,
        }
    }

    async fn awake(self: &Arc<Self>, command: Command<S>, next_ids: i64) {
        let findings = Findings { output: Some(NOTHING.to_vec()), attempts: 1, ..Findings::default() };
        let next = Next::Settled(Event::Done { step: command.step_index() });
        self.settle(command, Attempted { ending: Ending::Done, findings }, next, next_ids).await;
    }
}
