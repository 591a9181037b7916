//! Sub-sagas: steps that are sagas of their own, on the same store, under the key of the saga and the step's name.
//!
//! Nothing is sent between the two. The command of the step looks at its saga: it starts it, waits for its end, or turns it
//! round, and each of these may be done again. While it waits, its row is not leased. When the saga ends, or needs a person,
//! whoever commits that in this process has the command looked at again; elsewhere it falls due by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::attempt::Attempted;

use super::command::{Command, InFlight};
use super::error::StartError;
use super::outcome::{Outcome, outcome_of};
use super::prepared::{Findings, HandOn};
use super::saga_desk::SagaDesk;
use super::shared::Shared;
use crate::key::{Key, StepId};
use crate::machine::{self, Ending, Event, Failure, FailureKind, Next, Phase, SagaState};
use crate::saga::{Definition, StepRun};
use crate::step::Rejection;
use crate::store::{Changes, NewSaga, Postponed, SagaId, SagaRow, Status, Store};

/// After how long a saga is looked at again that another process may work on, at first and at most.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const DOUBLINGS_MAX: u32 = 4;
/// Beyond so many that wait, the others fall due by themselves.
const WAITING_MAX: usize = 100_000;
/// What a saga is told that was taken back.
const TAKEN_BACK: &str = "the saga that it is a step of compensates";

/// Those of this process that wait, by the saga that they wait for. Nothing rests on it.
#[derive(Debug, Default)]
pub(super) struct Children(Mutex<HashMap<SagaId, Postponed>>);

impl Children {
    fn put(&self, child: SagaId, waiting: Postponed) {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waits.len() < WAITING_MAX {
            waits.insert(child, waiting);
        }
    }

    fn take(&self, child: SagaId) -> Option<Postponed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&child)
    }
}

/// What there is to do about a command.
enum Look {
    /// Its step is decided.
    Settled(Event, Option<Vec<u8>>),
    /// The saga is not at its end, for a reason in words.
    Waits(Option<SagaId>, String),
}

impl<S: Store> Shared<S> {
    /// Does what the command of a sub-saga asks for, as far as that can be done now.
    pub(super) async fn look_after_child(self: &Arc<Self>, command: Command<S>, next_ids: i64) {
        let look = match self.look_at_child(&command).await {
            Some(Ok(look)) => look,
            Some(Err(reason)) if command.is_undo() => {
                Look::Settled(Event::UndoBlocked { step: command.step_index(), reason }, None)
            }
            Some(Err(reason)) => {
                Look::Settled(Event::Blocked { step: command.step_index(), reason, maybe: false }, None)
            }
            None => return self.give_back(&[command.work]).await,
        };
        match look {
            Look::Settled(event, output) => {
                let findings = Findings { output, attempts: command.attempt_number(), ..Findings::default() };
                let attempted = Attempted { ending: Ending::Done, findings };
                self.settle(command, attempted, Next::Settled(event), next_ids).await;
            }
            Look::Waits(child, why) => self.wait_for_child(command, child, why).await,
        }
    }

    /// A saga has ended, or needs a person: the command that waits for it, if it is here, is due now.
    pub(super) fn wake_parent(self: &Arc<Self>, child: SagaId) {
        let Some(waiting) = self.children.take(child) else { return };
        let (shared, under_way) = (Arc::clone(self), self.tasks.enter());
        self.spawn(Box::pin(async move {
            let due = Postponed { due_in: Duration::ZERO, ..waiting };
            // Whoever has claimed it meanwhile looks for himself.
            if let Ok(Ok(())) = shared.recorder.record(Changes { postponed: vec![due], ..Changes::default() }).await {
                shared.leave_work(Duration::ZERO);
            }
            drop(under_way);
        }));
    }

    async fn wait_for_child(self: &Arc<Self>, command: Command<S>, child: Option<SagaId>, why: String) {
        let doublings = u32::try_from(command.work.epoch).unwrap_or(u32::MAX).min(DOUBLINGS_MAX);
        let due_in = LOOK_AGAIN.saturating_mul(1 << doublings) / 2;
        let waiting = Postponed {
            work: command.work,
            due_in,
            // Its saga was started: whoever cancels the outer one must not take the command for one that nobody has had.
            attempts: command.attempts.max(1),
            maybe: command.maybe,
            error: Some(why),
        };
        let changes = Changes { postponed: vec![waiting.clone()], ..Changes::default() };
        match self.recorder.record(changes).await {
            Ok(Ok(())) => self.announce_work(due_in),
            // Somebody else has it.
            Ok(Err(_)) => return,
            Err(_) => return self.give_back(&[command.work]).await,
        }
        let Some(child) = child else { return };
        self.children.put(child, waiting);
        // It may have ended before anybody knew that it is waited for.
        let saga = &command.saga;
        let key = saga.key.hosted(command.step().name);
        let row = self.ask("saga", || self.store.saga(&saga.tenant, &key)).await;
        if row.flatten().is_some_and(|row| row.status.is_ended()) {
            self.wake_parent(child);
        }
    }

    async fn look_at_child(self: &Arc<Self>, command: &Command<S>) -> Option<Result<Look, String>> {
        let (saga, step) = (&command.saga, command.step_index());
        let StepRun::Child(child, result) = &command.step().run else { return Some(Err("it is no saga".to_owned())) };
        let key = saga.key.hosted(command.step().name);
        let row = self.ask("saga", || self.store.saga(&saga.tenant, &key)).await?;
        let phase = saga.state.phase;
        Some(match row {
            // A person ended this saga as it was.
            Some(_) if !command.is_undo() && matches!(phase, Phase::Completed | Phase::Compensated) => {
                Ok(Look::Settled(Event::Cancelled { step }, None))
            }
            None if command.is_undo() => Err(format!("there is no saga with the key `{key}`")),
            None if phase == Phase::Running => self.start_child(command, child, key).await?,
            None => self.bar_child(command, child, key).await?,
            Some(row) if row.definition.name != child.id.name => {
                Err(format!("the key `{key}` belongs to the saga {}", row.definition))
            }
            Some(row) => self.judge_child(command, &row, result).await?,
        })
    }

    async fn start_child(
        self: &Arc<Self>,
        command: &Command<S>,
        child: &Arc<Definition<S>>,
        key: Key,
    ) -> Option<Result<Look, String>> {
        let saga = &command.saga;
        let (input, why) = (saga.input_of(command.step_index()).to_vec(), format!("waits for the saga {key}"));
        Some(match self.start_saga(child, &saga.tenant, key, input, Duration::ZERO).await {
            Ok(started) => Ok(Look::Waits(Some(started.id), why)),
            Err(StartError::Store(error)) => Ok(Look::Waits(None, format!("its saga cannot be started: {error}"))),
            Err(StartError::ShuttingDown) => return None,
            Err(error) => Err(format!("its saga cannot be started: {error}")),
        })
    }

    /// What was never started must not be started any more, by an owner that was taken for dead.
    async fn bar_child(
        self: &Arc<Self>,
        command: &Command<S>,
        child: &Arc<Definition<S>>,
        key: Key,
    ) -> Option<Result<Look, String>> {
        let saga = &command.saga;
        let input = saga.input_of(command.step_index()).to_vec();
        let new = match self.new_saga(child, &saga.tenant, key, input) {
            Ok(new) => new,
            Err(error) => return Some(Err(error.to_string())),
        };
        let state = machine::barred(&child.shape, TAKEN_BACK);
        let ids = self.take_ids(1).await?;
        let barred = NewSaga {
            id: SagaId(ids.start),
            status: state.status(),
            state: state.encode(),
            commands: Vec::new(),
            ..new
        };
        let start = Changes { start: Some(Box::new(barred)), ..Changes::default() };
        Some(match self.recorder.record(start).await {
            Ok(Ok(())) => Ok(Look::Settled(Event::Cancelled { step: command.step_index() }, None)),
            _ => Ok(Look::Waits(None, "its saga is to be barred".to_owned())),
        })
    }

    async fn judge_child(
        self: &Arc<Self>,
        command: &Command<S>,
        row: &SagaRow,
        result: &'static str,
    ) -> Option<Result<Look, String>> {
        let (saga, step, key) = (&command.saga, command.step_index(), &row.key);
        let Some(definition) = self.definitions.get(&row.definition) else {
            return Some(Ok(Look::Waits(None, format!("{} is not registered here", row.definition))));
        };
        let state = match SagaState::decode(&row.state, definition.steps.len()) {
            Ok(state) => state,
            Err(problem) => return Some(Ok(Look::Waits(Some(row.id), format!("the saga {key} {problem}")))),
        };
        let is_taken_back = saga.state.phase == Phase::Compensating;
        Some(Ok(match row.status {
            Status::Compensated if command.is_undo() => Look::Settled(Event::Undone { step, informed: true }, None),
            Status::Compensated if is_taken_back => Look::Settled(Event::Cancelled { step }, None),
            Status::Compensated => Look::Settled(Event::Rejected { step, failure: failure_of(step, &state) }, None),
            Status::Completed if command.is_undo() => {
                self.take_child_back(row, definition).await?;
                Look::Waits(Some(row.id), format!("waits for the saga {key}, which is undone"))
            }
            Status::Completed => {
                let id = StepId::doing(result);
                let record = self.ask("record_of", || self.store.record_of(&row.tenant, key, &id)).await?;
                let Some(output) = record.and_then(|record| record.output) else {
                    return Some(Err(format!("the saga {key} completed, and `{result}` has no recorded output")));
                };
                Look::Settled(Event::Done { step }, Some(output))
            }
            _ => {
                if is_taken_back && !command.is_undo() && state.phase == Phase::Running {
                    let desk = SagaDesk::of(self, &row.tenant);
                    // What cannot be turned round any more comes to its end, and is undone then.
                    if let Err(error) = desk.cancel(key.as_str(), TAKEN_BACK).await {
                        tracing::debug!(%key, %error, "a sub-saga is not turned round");
                    }
                }
                Look::Waits(Some(row.id), waits_for(key, &state, definition))
            }
        }))
    }

    /// All that a completed saga did is undone.
    async fn take_child_back(self: &Arc<Self>, row: &SagaRow, definition: &Arc<Definition<S>>) -> Option<()> {
        let records = self.ask("records_of", || self.store.records_of(&row.tenant, &row.key)).await?;
        let Ok(mut child) = InFlight::of_row(row, records, definition) else { return Some(()) };
        let ids = self.take_ids(definition.width).await?;
        let hand_on = HandOn { ids: ids.start, has_place: false };
        let prepared = self.advance(&mut child, Event::TakenBack, &Findings::default(), hand_on);
        if let Ok(prepared) = prepared {
            // If it moved meanwhile, it is looked at again.
            _ = self.apply_prepared(prepared).await;
        }
        Some(())
    }
}

/// Why a saga that compensated did so.
fn failure_of(step: usize, child: &SagaState) -> Failure {
    let forced = || Rejection::new(child.forced.as_deref().unwrap_or("its saga was compensated"));
    let reason = child.failure.as_ref().map_or_else(forced, |failure| failure.reason.clone());
    Failure { step, kind: FailureKind::Rejected, reason }
}

fn waits_for<S: Store>(key: &Key, child: &SagaState, definition: &Definition<S>) -> String {
    match outcome_of(&definition.shape, child) {
        Some(Outcome::Stuck { step, reason }) => {
            format!("waits for the saga {key}, which is stuck at `{step}`: {reason}")
        }
        _ => format!("waits for the saga {key}, which is {}", child.status()),
    }
}
