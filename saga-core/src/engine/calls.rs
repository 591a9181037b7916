//! Workers for the steps that call the outside world, and the recording of what came of them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::attempt::AttemptResult;
use super::bulkhead::{Admission, ConcurrencyKey, FairLane, Pool};
use super::choose::make_choice;
use super::command::WorkItem;
use super::in_flight::SagaInstance;
use super::late;
use super::prepared::{AttemptDetails, NextSlot, NextWork};
use super::put_back::TakenWork;
use super::shared::EngineContext;
use super::transactions::refs;
use crate::log;
use crate::machine::{Ending, Event, Next};
use crate::saga::StepRun;
use crate::store::{Applied, Miss, RetryClass, StepRecord, Store, WorkRef};
use crate::unwind::caught;

/// What an owner that lost its command knows of it.
#[derive(Debug, Clone, Copy)]
pub(super) enum LateFinding {
    /// It took effect.
    Success,
    /// A call of it ended without a definite answer at that moment of this process' clock.
    Unanswered { ended_at: Duration },
}

impl<S: Store> EngineContext<S> {
    /// Makes calls until the queue is closed.
    pub(super) async fn serve_calls(self: Arc<Self>) {
        let line_of = |seat: ConcurrencyKey| match seat.pool {
            Pool::Calls => Admission::on(self.bulkheads.try_line(seat)),
            // What the engine does itself is short, and waits for no call.
            Pool::Transactions => Admission::Runs(None),
        };
        while let Some(commands) = self.calls.next(|lane, admitted| self.take_first(lane, admitted, line_of)).await {
            for command in commands {
                self.start_call(command);
            }
        }
    }

    /// Takes the first command that may run now, unless one was admitted. `line_of` says whether it may, and with which line.
    pub(super) fn take_first(
        &self,
        lane: &mut FairLane<WorkItem<S>>,
        admitted: &mut Vec<WorkItem<S>>,
        line_of: impl Fn(ConcurrencyKey) -> Admission,
    ) {
        let mut at = 0;
        while admitted.is_empty()
            && let Some(command) = lane.get(at)
        {
            match line_of(self.seat_of(&command.saga, command.command)) {
                Admission::Runs(held) => admitted.extend(lane.remove(at).map(|command| command.with_line(held))),
                Admission::Waits => at += 1,
            }
        }
    }

    /// Makes a call on its line, beside all others. If that panics, the command is put back.
    pub(super) fn start_call(self: &Arc<Self>, command: WorkItem<S>) {
        let taken = [TakenWork::of(&command)];
        let Err(panic) = caught(|| self.spawn_call(command, taken)) else { return };
        self.has_panicked("call", &panic);
        let shared = Arc::clone(self);
        self.spawn("put back", Box::pin(async move { shared.put_back(&taken, &panic).await }));
    }

    fn spawn_call(self: &Arc<Self>, mut command: WorkItem<S>, taken: [TakenWork; 1]) {
        // An exclusive step may take hours. What waits for its line would outlive its lease.
        if command.options().exclusive
            && let Some(place) = &mut command.slot
        {
            place.leave_pool();
        }
        let (shared, under_way) = (Arc::clone(self), self.tasks.enter());
        self.spawn(
            "call",
            Box::pin(async move {
                shared.watch_over("calls", &taken, pin!(shared.run_call(command))).await;
                drop(under_way);
            }),
        );
    }

    /// Makes one call and records what came of it.
    pub(super) async fn run_call(self: &Arc<Self>, command: WorkItem<S>) {
        // Nothing is waited for between the look at the claim and the call.
        let Some(next_ids) = self.take_ids(command.saga.definition.width).await else { return };
        let Some(mut command) = self.hold_leases(vec![command]).await.pop() else { return };
        if command.options().exclusive && !self.take_lease(&mut command).await {
            return self.release(&[command.work]).await;
        }
        let attempted = match &command.late_success {
            // An older owner has the answer already.
            Some(noted) => late::attempted(&command, noted),
            None if command.is_child() => return self.run_sub_saga(command, next_ids.start).await,
            None if let StepRun::Idle(idle) = &command.step().run => {
                let idle = idle.clone();
                return self.end_wait(command, &idle, next_ids.start).await;
            }
            None if command.is_own() => {
                let is_choice = command.saga.definition.shape.is_choice(command.step_index());
                let done = if is_choice { Some(make_choice(&command)) } else { self.unfold_or_join(&command).await };
                let Some((attempted, next)) = done else { return };
                return self.record_attempt(command, attempted, next, next_ids.start).await;
            }
            None => self.ask_or_call(&command).await,
        };
        let next = self.after(&command, &attempted);
        self.statistics.count(&command, &attempted.ending);
        self.record_attempt(command, attempted, next, next_ids.start).await;
    }

    /// Records what came of an attempt. It is recorded again as often as that takes; the call is not made again.
    pub(super) async fn record_attempt(
        self: &Arc<Self>,
        mut command: WorkItem<S>,
        mut attempted: AttemptResult,
        mut next: Next,
        next_ids: i64,
    ) {
        let hand_on = NextWork { ids: next_ids, slot: NextSlot::after(&command) };
        let mut in_doubt = Vec::new();
        let mut backoff = self.backoff(0);
        loop {
            let mut prepared = self.decide_attempt(&command, &next, &attempted.findings, hand_on);
            let changes = prepared.take_changes();
            let successor = prepared.successor.as_ref().map(|successor| successor.work);
            match self.recorder.record(changes).await {
                Ok(Ok(())) => return self.after_commit(prepared, command.slot.take()),
                Ok(Err(Miss::Saga(row))) => {
                    let Some(records) = self.records_of_others(&command.saga).await else { return };
                    if let Err(problem) = command.saga.refresh(&row, records) {
                        return self.block_unreadable(&row, &problem, Some(command.work)).await;
                    }
                    // What it waits for may have arrived.
                    if let Some(ended) = self.wait_result(&command) {
                        (attempted, next) = ended;
                    }
                }
                Ok(Err(Miss::Late { output, .. })) => {
                    attempted = late::attempted(&command, &output);
                    next = self.after(&command, &attempted);
                }
                Ok(Err(Miss::Work(_) | Miss::Record(_))) => {
                    // Either it was this very change that was recorded, in a commit that did not answer, or somebody
                    // else has the command.
                    self.release(&in_doubt).await;
                    return self.lost_lease(command, attempted).await;
                }
                Err(error) => {
                    if error.class == RetryClass::Unknown {
                        in_doubt.extend(successor);
                    }
                    if self.has_stopped() {
                        return;
                    }
                    self.pause_for_store(&mut backoff).await;
                }
            }
        }
    }

    /// What is recorded of the steps, read after the row that says that the saga moved: what the branches beside this one
    /// left, and what a success that came late put in the place of an operator's value. Nothing when the runtime stops first.
    async fn records_of_others(&self, saga: &SagaInstance<S>) -> Option<Vec<StepRecord>> {
        self.retry_store_to_the_end("records_of_steps", || self.store.records_of_steps(&saga.tenant, &saga.key)).await
    }

    /// The command was lost to another owner. Its decision is void; a success is a fact and is kept, and so is that a call
    /// was made which may have taken effect.
    async fn lost_lease(self: &Arc<Self>, command: WorkItem<S>, attempted: AttemptResult) {
        if !command.effect().is_outside() || command.is_undo() {
            return;
        }
        let findings = attempted.findings;
        match attempted.ending {
            Ending::Done => {
                let noted = late::encode(&findings);
                let is_noted =
                    self.retry_store_to_the_end("note_late", || self.store.note_late(command.work.id, &noted)).await;
                if is_noted == Some(false) {
                    self.record_late(command.saga, command.command, findings, LateFinding::Success).await;
                }
            }
            // Who has the row now knows that this call began, and waits for its end before it undoes anything blindly.
            Ending::Erred { not_sent: false, .. } | Ending::Unstorable { .. } if command.is_call() => {
                let ended_at = self.env.now();
                self.record_late(command.saga, command.command, findings, LateFinding::Unanswered { ended_at }).await;
            }
            _ => {}
        }
    }

    /// Brings a fact to a saga that was decided without it.
    async fn record_late(
        self: &Arc<Self>,
        mut saga: SagaInstance<S>,
        order: crate::machine::Command,
        findings: AttemptDetails,
        fact: LateFinding,
    ) {
        let (crate::machine::Command::Do { step } | crate::machine::Command::Undo { step, .. }) = order;
        let (name, item) = (saga.step(step).name, saga.state.item_number(step));
        let mut backoff = self.backoff(0);
        while !self.has_stopped() {
            match self.record_late_once(&mut saga, (name, item), &findings, fact).await {
                Ok(Ok(()) | Err(Miss::Work(_) | Miss::Late { .. })) => return,
                Ok(Err(Miss::Saga(_) | Miss::Record(_))) => {}
                Err(error) => {
                    log::warn!(error, key = %saga.key, "what an older owner knows could not be recorded; trying again");
                }
            }
            self.pause_for_store(&mut backoff).await;
        }
    }

    async fn record_late_once(
        self: &Arc<Self>,
        saga: &mut SagaInstance<S>,
        (name, item): (&str, Option<u32>),
        findings: &AttemptDetails,
        fact: LateFinding,
    ) -> Result<Applied, String> {
        let row = self.store.saga(&saga.tenant, &saga.key).await.map_err(|error| error.to_string())?;
        let Some(row) = row else { return Ok(Ok(())) };
        let records = self.store.records_of(&saga.tenant, &saga.key).await.map_err(|error| error.to_string())?;
        let definition = match self.definitions.get(&row.definition) {
            Some(definition) => Arc::clone(definition),
            None if row.definition == saga.definition.id => Arc::clone(&saga.definition),
            None => return Err(format!("{} is not registered here", row.definition)),
        };
        let given = saga.given_to(name);
        *saga = SagaInstance::of_row(&row, records.clone(), &definition)?;
        // It may have moved to another version, where the step stands elsewhere.
        let step = definition.shape.position(name).and_then(|base| saga.state.index_of(base, item));
        let step = step.ok_or_else(|| format!("{} has no step `{name}`", definition.id))?;
        saga.recall_given(step, given);
        let event = match fact {
            LateFinding::Success => Event::Late { step },
            LateFinding::Unanswered { ended_at } if self.is_news(saga, step, &records, findings, ended_at).await? => {
                Event::LateUnknown { step }
            }
            LateFinding::Unanswered { .. } => return Ok(Ok(())),
        };
        let ids = self.take_ids(saga.definition.width).await.ok_or("no ids")?;
        let hand_on = NextWork { ids: ids.start, slot: NextSlot::Nowhere };
        let before = saga.state.clone();
        let Ok(mut prepared) = self.decide(saga, event, findings, hand_on) else { return Ok(Ok(())) };
        if saga.state == before {
            return Ok(Ok(()));
        }
        let changes = prepared.take_changes();
        let applied = self.recorder.record(changes).await.map_err(|error| error.to_string())?;
        if applied.is_ok() {
            self.after_commit(prepared, None);
        }
        Ok(applied)
    }

    /// Gives rows back, and tries as long as the runtime runs: what is not given back waits for the end of its lease.
    pub(super) async fn release(&self, rows: &[WorkRef]) {
        if rows.is_empty() {
            return;
        }
        if self.retry_store_to_the_end("give_back", || self.store.release_work(rows)).await.is_some() {
            self.announce_unclaimed(Duration::ZERO);
        }
    }

    /// Gives back what waited in a queue when it was closed.
    pub(super) async fn release_all(&self, commands: Vec<WorkItem<S>>) {
        self.release(&refs(&commands)).await;
    }

    /// Changes that an operator or a claim decided on, with what follows.
    pub(super) async fn commit_decision(
        self: &Arc<Self>,
        mut prepared: super::prepared::PendingCommit<S>,
    ) -> Result<Applied, super::recorder::RecordError> {
        let changes = prepared.take_changes();
        match self.recorder.record(changes).await {
            Ok(applied) => {
                if applied.is_ok() {
                    self.after_commit(prepared, None);
                }
                Ok(applied)
            }
            Err(error) => {
                if let (RetryClass::Unknown, Some(successor)) = (error.class, &prepared.successor) {
                    // What was committed after all is leased to this process, which does not know it.
                    self.release(&[successor.work]).await;
                }
                Err(error)
            }
        }
    }
}

/// What a command that vanished with its owner as often as it may be tried ended with.
pub(super) fn vanished<S: Store>(command: &WorkItem<S>) -> AttemptResult {
    AttemptResult {
        ending: Ending::Vanished,
        findings: AttemptDetails { attempts: command.attempts, ..AttemptDetails::default() },
    }
}
