//! Sub-sagas: steps that are sagas of their own, on the same store, under the key of the saga and the step's name.
//!
//! No message passes between the two. The command of the step reads the sub-saga, and starts it, waits for its end, or cancels it;
//! each of these can be repeated. While it waits, its row is not leased. The process that commits the end of the sub-saga makes
//! that row due (`commit/related.rs`). This only saves time: the row becomes due by itself as well.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::admin::{AdminContext, AdminRuntime, cancel};
use crate::engine::commit::changes;
use crate::engine::context::{EngineContext, StartError};
use crate::engine::decide::{StartOptions, tombstone};
use crate::engine::execute::record::AttemptRecorder;
use crate::engine::instance::{AttemptDetails, AttemptResult, NextSlot, NextWork, WorkItem};
use crate::engine::start::Starter;
use crate::engine::store_calls::or_unreadable;
use crate::key::Key;
use crate::log;
use crate::machine::{Ending, Event, Failure, FailureKind, Next, Phase, SagaState};
use crate::saga::{Definition, StepRun};
use crate::step::Rejection;
use crate::store::{Postponed, SagaId, SagaRow, Status, Store};

/// The pause before a sub-saga is read again. It doubles up to `DOUBLINGS_MAX` times.
const CHECK_AGAIN_IN: Duration = Duration::from_millis(500);

const DOUBLINGS_MAX: u32 = 6;

/// The reason of the cancellation of a sub-saga whose parent compensates.
const TAKEN_BACK: &str = "the saga that it is a step of compensates";

/// What follows from the state of the sub-saga.
enum ChildState {
    /// The step is decided.
    Settled(Event, Option<Vec<u8>>),
    /// The sub-saga has not ended.
    Waits,
    /// The sub-saga cannot begin or be read now, for this reason.
    Blocked(String),
}

/// What follows when every process that checked a sub-saga died. Whether the sub-saga was started is not known.
pub(crate) fn given_up<S: Store>(command: &WorkItem<S>) -> Next {
    let (step, times) = (command.step_index(), command.attempts);
    let reason = format!("{times} processes vanished while they looked at its saga");
    Next::Settled(if command.is_undo() {
        Event::UndoBlocked { step, reason }
    } else {
        Event::Blocked { step, reason, in_doubt: false }
    })
}

/// Why the sub-saga compensated.
fn failure_of(step: usize, child: &SagaState) -> Failure {
    let forced = || Rejection::new(child.forced.as_deref().unwrap_or("its saga was compensated"));
    let reason = child.failure.as_ref().map_or_else(forced, |failure| failure.reason.clone());
    Failure { step, kind: FailureKind::Rejected, reason }
}

/// Starts, watches and undoes sub-sagas.
pub(crate) struct SubSagas<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    pub(super) records: Arc<AttemptRecorder<S>>,
    starter: Arc<Starter<S>>,
}

impl<S: Store> SubSagas<S> {
    pub(crate) fn new(records: Arc<AttemptRecorder<S>>, starter: Arc<Starter<S>>) -> Self {
        Self { ctx: Arc::clone(&records.ctx), records, starter }
    }
}

impl<S: Store> SubSagas<S> {
    /// Runs the command of a sub-saga step as far as that is possible now.
    pub(crate) async fn run_sub_saga(self: &Arc<Self>, command: WorkItem<S>, next_ids: i64) {
        let state = match self.inspect_child(&command).await {
            Some(Ok(state)) => state,
            Some(Err(reason)) if command.is_undo() => {
                ChildState::Settled(Event::UndoBlocked { step: command.step_index(), reason }, None)
            }
            Some(Err(reason)) => {
                ChildState::Settled(Event::Blocked { step: command.step_index(), reason, in_doubt: false }, None)
            }
            None => return self.records.committer.scheduler.release(&[command.work]).await,
        };
        match state {
            ChildState::Settled(event, output) => {
                let findings =
                    AttemptDetails { output, attempts: command.attempt_number(), ..AttemptDetails::default() };
                let attempted = AttemptResult { ending: Ending::Done, findings };
                self.records.record_attempt(command, attempted, Next::Settled(event), next_ids).await;
            }
            ChildState::Waits => self.wait_for_child(command, None).await,
            ChildState::Blocked(problem) => self.wait_for_child(command, Some(problem)).await,
        }
    }

    async fn wait_for_child(self: &Arc<Self>, command: WorkItem<S>, problem: Option<String>) {
        let doublings = u32::try_from(command.work.epoch).unwrap_or(u32::MAX).saturating_sub(1).min(DOUBLINGS_MAX);
        let due_in = CHECK_AGAIN_IN.saturating_mul(1 << doublings);
        let waiting = Postponed {
            work: command.work,
            due_in,
            // Not 0: a cancel of the parent must not take it for a command that was never claimed. Not more: owners that died
            // before no longer count, since this process survived the check.
            attempts: 1,
            in_doubt: command.in_doubt,
            error: problem,
        };
        let changes = changes::postpone(waiting.clone());
        match self.records.committer.recorder.record(changes).await {
            Ok(Ok(())) => self.records.committer.scheduler.announce_work(due_in),
            // Another process has the command.
            Ok(Err(_)) => return,
            Err(_) => return self.records.committer.scheduler.release(&[command.work]).await,
        }
        // It may have ended before the process that ended it could see this waiting row.
        let saga = &command.saga;
        let key = saga.key.hosted(command.step().name);
        let read = || or_unreadable(self.ctx.store.saga(&saga.tenant, &key));
        let read = self.records.committer.store_calls.retry_store("saga", read).await;
        // One that cannot be read is looked at again when the row is due.
        let row = read.and_then(Result::ok).flatten();
        if row.is_some_and(|row| row.status.is_ended()) {
            let due = Postponed { due_in: Duration::ZERO, ..waiting };
            // A worker that has claimed the row meanwhile reads the sub-saga itself.
            if let Ok(Ok(())) = self.records.committer.recorder.record(changes::postpone(due)).await {
                self.records.committer.scheduler.announce_unclaimed(Duration::ZERO);
            }
        }
    }

    async fn inspect_child(self: &Arc<Self>, command: &WorkItem<S>) -> Option<Result<ChildState, String>> {
        let saga = &command.saga;
        let StepRun::Child(child) = &command.step().run else { return Some(Err("it is no saga".to_owned())) };
        let key = saga.key.hosted(command.step().name);
        let read = || or_unreadable(self.ctx.store.saga(&saga.tenant, &key));
        let row = match self.records.committer.store_calls.retry_store("saga", read).await? {
            Ok(row) => row,
            Err(error) => return Some(Err(format!("the saga `{key}` cannot be read: {error}"))),
        };
        Some(match row {
            None if command.is_undo() => Err(format!("there is no saga with the key `{key}`")),
            None if saga.state.phase == Phase::Running => self.start_child(command, child, key).await?,
            None => self.tombstone_child(command, child, key).await?,
            Some(row) if row.definition.name != child.id.name => {
                Err(format!("the key `{key}` belongs to the saga {}", row.definition))
            }
            Some(row) => self.state_of_child(command, &row).await?,
        })
    }

    async fn start_child(
        self: &Arc<Self>,
        command: &WorkItem<S>,
        child: &Arc<Definition<S>>,
        key: Key,
    ) -> Option<Result<ChildState, String>> {
        let saga = &command.saga;
        let input = saga.input_of(command.step_index()).to_vec();
        let traceparent = saga.state.traceparent().map(str::to_owned);
        let options = StartOptions { traceparent, ..StartOptions::default() };
        Some(match self.starter.start_saga(child, &saga.tenant, key, input, options).await {
            Ok(_) => Ok(ChildState::Waits),
            Err(StartError::Store(error)) => Ok(ChildState::Blocked(format!("its saga cannot be started: {error}"))),
            Err(StartError::ShuttingDown) => return None,
            Err(error) => Err(format!("its saga cannot be started: {error}")),
        })
    }

    /// Leaves a tombstone for a sub-saga that was never started, so that an earlier owner cannot start it any more.
    async fn tombstone_child(
        self: &Arc<Self>,
        command: &WorkItem<S>,
        child: &Arc<Definition<S>>,
        key: Key,
    ) -> Option<Result<ChildState, String>> {
        let saga = &command.saga;
        let input = saga.input_of(command.step_index()).to_vec();
        let new = match self.starter.new_saga(child, &saga.tenant, key, input, StartOptions::default()) {
            Ok(new) => new,
            Err(error) => return Some(Err(error.to_string())),
        };
        let ids = self.records.committer.store_calls.take_ids(1).await?;
        let tombstone_row = tombstone(child, new, SagaId(ids.start), TAKEN_BACK);
        let start = changes::start(tombstone_row);
        Some(match self.records.committer.recorder.record(start).await {
            Ok(Ok(())) => Ok(ChildState::Settled(Event::Cancelled { step: command.step_index() }, None)),
            _ => Ok(ChildState::Blocked("its saga is to be barred".to_owned())),
        })
    }

    async fn state_of_child(
        self: &Arc<Self>,
        command: &WorkItem<S>,
        row: &SagaRow,
    ) -> Option<Result<ChildState, String>> {
        let (saga, step, key) = (&command.saga, command.step_index(), &row.key);
        let Some(definition) = self.ctx.definitions.get(&row.definition) else {
            return Some(Ok(ChildState::Blocked(format!("{} is not registered here", row.definition))));
        };
        let state = match SagaState::decode(&row.state, definition.steps.len()) {
            Ok(state) => state,
            Err(problem) => return Some(Ok(ChildState::Blocked(format!("the saga {key} {problem}")))),
        };
        // Also if an operator forced the parent to be compensated: a later effect of the sub-saga must not stay.
        let is_taken_back = matches!(saga.state.phase, Phase::Compensating | Phase::Compensated);
        Some(Ok(match row.status {
            Status::Compensated if command.is_undo() => {
                ChildState::Settled(Event::Undone { step, informed: true }, None)
            }
            Status::Compensated if is_taken_back => ChildState::Settled(Event::Cancelled { step }, None),
            Status::Compensated => {
                ChildState::Settled(Event::Rejected { step, failure: failure_of(step, &state) }, None)
            }
            Status::Completed if command.is_undo() => {
                self.undo_child(row, definition).await?;
                ChildState::Waits
            }
            Status::Completed => {
                let returned = self.result_of_child(row, &state, definition).await?;
                let returned = returned.and_then(|output| (command.step().check_output)(&output).map(|()| output));
                let output = match returned {
                    Ok(output) => output,
                    Err(problem) => {
                        return Some(Err(format!("the result of the saga {key} cannot be taken: {problem}")));
                    }
                };
                ChildState::Settled(Event::Done { step }, Some(output))
            }
            _ => {
                if is_taken_back && !command.is_undo() && state.phase == Phase::Running {
                    let runtime = AdminRuntime::new(&self.records.committer, &self.records.decider);
                    // The row is looked at again soon anyway.
                    let admin = AdminContext::of(runtime, &row.tenant).without_lock_retries();
                    // A sub-saga past its pivot runs to its end, and is undone then.
                    if let Err(error) = cancel(&admin, key, None, TAKEN_BACK).await {
                        log::debug!(tenant = row.tenant.as_str(), saga = %key, %error, "sub-saga not cancelled");
                    }
                }
                ChildState::Waits
            }
        }))
    }

    /// Makes a completed sub-saga compensate.
    async fn undo_child(self: &Arc<Self>, row: &SagaRow, definition: &Arc<Definition<S>>) -> Option<()> {
        let Ok(mut child) = self.instance_of_child(row, definition).await? else { return Some(()) };
        let ids = self.records.committer.store_calls.take_ids(definition.width).await?;
        let next_work = NextWork { ids: ids.start, slot: NextSlot::Nowhere };
        let prepared =
            self.records.decider.decide(&mut child, Event::UndoRequested, &AttemptDetails::default(), next_work);
        if let Ok(prepared) = prepared {
            // After a conflict, the next check decides again.
            _ = self.records.committer.commit_decision(prepared).await;
        }
        Some(())
    }
}
