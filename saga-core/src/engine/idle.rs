//! What the engine does itself for a step that only waits: its row falls due later, and then the step is done.

use std::sync::Arc;
use std::time::Duration;

use super::attempt::AttemptResult;
use super::command::WorkItem;
use super::in_flight::SagaInstance;
use super::prepared::AttemptDetails;
use super::shared::EngineContext;
use crate::machine::{self, Ending, Event, Failure, FailureKind, Next};
use crate::saga::{Idle, LONGEST, Or, StepDefinition, StepRun};
use crate::step::Rejection;
use crate::store::{Changes, Postponed, Store, StoreError, Timestamp};

/// What a step returns that only slept.
const NOTHING: &[u8] = b"null";

/// How long a step waits from when its turn has come, if it is one that only waits. What it waits for may be there.
///
/// A moment is compared with the store's clock, which is read when the row is claimed: that is at once.
pub(super) fn idle_for<S: Store>(step: &StepDefinition<S>, input: &[u8]) -> Option<Duration> {
    let StepRun::Idle(idle) = &step.run else { return None };
    let waits = match idle {
        Idle::For(duration) => *duration,
        Idle::Mapped => serde_json::from_slice(input).unwrap_or_default(),
        Idle::Until => Duration::ZERO,
        Idle::Signal(wait) => wait.within.unwrap_or_else(|| serde_json::from_slice(input).unwrap_or_default()),
    };
    // A duration of the user may be any; added to a moment, it must give one.
    Some(waits.min(LONGEST))
}

impl<S: Store> SagaInstance<S> {
    /// How long the command waits before it is due, if it is one that only waits.
    pub(super) fn idle_for(&self, order: machine::Command) -> Option<Duration> {
        let machine::Command::Do { step } = order else { return None };
        let of = self.definition.steps.get(step)?;
        let is_there = self.state.steps[step].signal.is_some();
        idle_for(of, self.input_of(step)).map(|idle| if is_there { Duration::ZERO } else { idle })
    }
}

impl<S: Store> EngineContext<S> {
    /// The row of a step that only waits is claimed.
    pub(super) async fn end_wait(self: &Arc<Self>, command: WorkItem<S>, idle: &Idle, next_ids: i64) {
        let left = match idle {
            Idle::For(_) | Idle::Mapped | Idle::Signal(_) => Ok(Duration::ZERO),
            Idle::Until => self.time_until(&command).await,
        };
        match left {
            Ok(Duration::ZERO) => self.awake(command, next_ids).await,
            Ok(left) => self.sleep_on(command, left).await,
            Err(error) => {
                self.store_failed("now", &error);
                self.release(&[command.work]).await;
            }
        }
    }

    /// How long it is until the moment that was written down with the command.
    async fn time_until(&self, command: &WorkItem<S>) -> Result<Duration, StoreError> {
        // The engine wrote it, so that it can be read.
        let moment: Timestamp = serde_json::from_slice(command.saga.input_of(command.step_index())).unwrap_or_default();
        let now = self.store.now().await?;
        self.store_works("now");
        let left = Duration::from_micros(u64::try_from(moment.0.saturating_sub(now.0)).unwrap_or_default());
        // What is left then is slept when it wakes.
        Ok(left.min(LONGEST))
    }

    async fn sleep_on(&self, command: WorkItem<S>, due_in: Duration) {
        let postponed = Postponed { work: command.work, due_in, attempts: 0, in_doubt: false, error: None };
        match self.recorder.record(Changes { postponed: vec![postponed], ..Changes::default() }).await {
            Ok(Ok(())) => self.announce_work(due_in),
            // Somebody else has it.
            Ok(Err(_)) => {}
            Err(_) => self.release(&[command.work]).await,
        }
    }

    async fn awake(self: &Arc<Self>, command: WorkItem<S>, next_ids: i64) {
        let Some((attempted, next)) = self.wait_result(&command) else { return };
        self.record_attempt(command, attempted, next, next_ids).await;
    }

    /// What a step that only waited ends with, as its saga stands now; nothing for any other step.
    pub(super) fn wait_result(&self, command: &WorkItem<S>) -> Option<(AttemptResult, Next)> {
        let StepRun::Idle(idle) = &command.step().run else { return None };
        let (saga, step) = (&command.saga, command.step_index());
        let settled = |output: Vec<u8>| (Some(output), Ending::Done, Event::Done { step });
        let (output, ending, event) = match idle {
            Idle::For(_) | Idle::Mapped | Idle::Until => settled(NOTHING.to_vec()),
            Idle::Signal(wait) if saga.state.steps[step].signal.is_none() => match &wait.or {
                Or::Reject => {
                    let within = idle_for(command.step(), saga.input_of(step)).unwrap_or_default();
                    let reason = Rejection::new(format!("no `{}` arrived within {within:?}", command.step().name));
                    let failure = Failure { step, kind: FailureKind::Rejected, reason: reason.clone() };
                    (None, Ending::Rejected(reason), Event::Rejected { step, failure })
                }
                Or::Default(default) => {
                    match default.apply(&saga.input, &saga.outputs).and_then(|output| self.check_length(output)) {
                        Ok(output) => settled(output),
                        Err(problem) => blocked(step, format!("what stands for its signal cannot be made: {problem}")),
                    }
                }
            },
            Idle::Signal(_) => match saga.mapped_input_of(step) {
                Some(signal) => settled(signal.to_vec()),
                None => blocked(step, "its signal was received, and is not there".to_owned()),
            },
        };
        let findings = AttemptDetails { output, attempts: 1, ..AttemptDetails::default() };
        Some((AttemptResult { ending, findings }, Next::Settled(event)))
    }
}

fn blocked(step: usize, reason: String) -> (Option<Vec<u8>>, Ending, Event) {
    (None, Ending::Undecodable { message: reason.clone() }, Event::Blocked { step, reason, in_doubt: false })
}
