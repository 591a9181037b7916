//! Workers for the steps that call the outside world, and the recording of what came of them.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::asking::pause_after;
use super::attempt::Attempted;
use super::choose::make_choice;
use super::command::Command;
use super::in_flight::InFlight;
use super::late;
use super::prepared::{Findings, HandOn};
use super::shared::Shared;
use super::transactions::refs;
use crate::machine::{Ending, Event, Next};
use crate::saga::StepRun;
use crate::store::{Applied, Miss, RetryClass, StepRecord, Store, WorkRef};

impl<S: Store> Shared<S> {
    /// Makes calls until the queue is closed.
    pub(super) async fn serve_calls(self: Arc<Self>) {
        let lines = Arc::new(Semaphore::new(self.settings.calls));
        while let Ok(line) = Arc::clone(&lines).acquire_owned().await {
            let take_one = |lane: &mut std::collections::VecDeque<_>, taken: &mut Vec<_>| {
                if taken.is_empty() {
                    taken.extend(lane.pop_front());
                }
            };
            let Some(commands) = self.calls.next(take_one).await else { return };
            let under_way = self.tasks.enter();
            let shared = Arc::clone(&self);
            self.spawn(Box::pin(async move {
                let mut line = Some(line);
                for command in commands {
                    // An exclusive step may take hours. What waits for its line would outlive its lease.
                    if command.options().exclusive {
                        line = None;
                    }
                    shared.run_call(command).await;
                }
                drop((line, under_way));
            }));
        }
    }

    /// Makes one call and records what came of it.
    pub(super) async fn run_call(self: &Arc<Self>, command: Command<S>) {
        let Some(mut command) = self.hold(vec![command]).await.pop() else { return };
        if command.options().exclusive && !self.begin_to_keep(&mut command).await {
            return self.give_back(&[command.work]).await;
        }
        let Some(next_ids) = self.take_ids(command.saga.definition.width).await else { return };
        let attempted = match &command.late {
            // An older owner has the answer already.
            Some(noted) => late::attempted(&command, noted),
            None if command.is_child() => return self.look_after_child(command, next_ids.start).await,
            None if let StepRun::Idle(idle) = &command.step().run => {
                let idle = idle.clone();
                return self.end_idle(command, &idle, next_ids.start).await;
            }
            None if command.is_own() => {
                let is_choice = command.saga.definition.shape.is_choice(command.step_index());
                let done = if is_choice { Some(make_choice(&command)) } else { self.unfold_or_join(&command).await };
                let Some((attempted, next)) = done else { return };
                return self.settle(command, attempted, next, next_ids.start).await;
            }
            None => self.ask_or_call(&command).await,
        };
        let next = self.after(&command, &attempted);
        self.statistics.count(&command, &attempted.ending);
        self.settle(command, attempted, next, next_ids.start).await;
    }

    /// Records what came of an attempt. It is recorded again as often as that takes; the call is not made again.
    pub(super) async fn settle(
        self: &Arc<Self>,
        mut command: Command<S>,
        mut attempted: Attempted,
        mut next: Next,
        next_ids: i64,
    ) {
        let hand_on = HandOn { ids: next_ids, has_place: command.place.is_some() };
        let mut in_doubt = Vec::new();
        let mut failures = 0;
        loop {
            let mut prepared = self.prepare(&command, &next, &attempted.findings, hand_on);
            let changes = prepared.take_changes();
            let successor = prepared.successor.as_ref().map(|successor| successor.work);
            match self.recorder.record(changes).await {
                Ok(Ok(())) => return self.after_commit(prepared, command.place.take()),
                Ok(Err(Miss::Saga(row))) => {
                    let Some(records) = self.records_of_others(&command.saga).await else { return };
                    if let Err(problem) = command.saga.refresh(&row, records) {
                        return self.block_unreadable(&row, &problem, Some(command.work)).await;
                    }
                    // What it waits for may have arrived.
                    if let Some(ended) = self.end_of_idle(&command) {
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
                    self.give_back(&in_doubt).await;
                    return self.lost(command, attempted).await;
                }
                Err(error) => {
                    if error.class == RetryClass::Unknown {
                        in_doubt.extend(successor);
                    }
                    if self.has_stopped() {
                        return;
                    }
                    self.env.sleep(pause_after(failures)).await;
                    failures += 1;
                }
            }
        }
    }

    /// What the branches beside this one recorded, read after the row that says that they did. Nothing when the runtime
    /// stops first.
    async fn records_of_others(&self, saga: &InFlight<S>) -> Option<Vec<StepRecord>> {
        if saga.definition.width == 1 {
            return Some(Vec::new());
        }
        self.ask_to_the_end("records_of_steps", || self.store.records_of_steps(&saga.tenant, &saga.key)).await
    }

    /// The command was lost to another owner. Its decision is void; a success is a fact and is kept.
    async fn lost(self: &Arc<Self>, command: Command<S>, attempted: Attempted) {
        let is_call = command.effect().is_outside();
        let (Ending::Done, true, false) = (&attempted.ending, is_call, command.is_undo()) else { return };
        let noted = late::encode(&attempted.findings);
        let is_noted = self.ask_to_the_end("note_late", || self.store.note_late(command.work.id, &noted)).await;
        if is_noted == Some(false) {
            self.correct(command.saga, command.order, attempted.findings).await;
        }
    }

    /// Brings a success to a saga that was decided without it.
    async fn correct(self: &Arc<Self>, mut saga: InFlight<S>, order: crate::machine::Command, findings: Findings) {
        let (crate::machine::Command::Do { step } | crate::machine::Command::Undo { step, .. }) = order;
        let (name, item) = (saga.step(step).name, saga.state.item_number(step));
        let mut failures = 0;
        while !self.has_stopped() {
            match self.correct_once(&mut saga, (name, item), &findings).await {
                Ok(Ok(()) | Err(Miss::Work(_) | Miss::Late { .. })) => return,
                Ok(Err(Miss::Saga(_) | Miss::Record(_))) => {}
                Err(error) => {
                    tracing::warn!(error, key = %saga.key, "a late success could not be recorded; trying again");
                }
            }
            self.env.sleep(pause_after(failures)).await;
            failures += 1;
        }
    }

    async fn correct_once(
        self: &Arc<Self>,
        saga: &mut InFlight<S>,
        (name, item): (&str, Option<u32>),
        findings: &Findings,
    ) -> Result<Applied, String> {
        let row = self.store.saga(&saga.tenant, &saga.key).await.map_err(|error| error.to_string())?;
        let Some(row) = row else { return Ok(Ok(())) };
        let records = self.store.records_of(&saga.tenant, &saga.key).await.map_err(|error| error.to_string())?;
        let definition = match self.definitions.get(&row.definition) {
            Some(definition) => Arc::clone(definition),
            None if row.definition == saga.definition.id => Arc::clone(&saga.definition),
            None => return Err(format!("{} is not registered here", row.definition)),
        };
        *saga = InFlight::of_row(&row, records, &definition)?;
        // It may have moved to another version, where the step stands elsewhere.
        let step = definition.shape.position(name).and_then(|base| saga.state.index_of(base, item));
        let step = step.ok_or_else(|| format!("{} has no step `{name}`", definition.id))?;
        let ids = self.take_ids(saga.definition.width).await.ok_or("no ids")?;
        let hand_on = HandOn { ids: ids.start, has_place: false };
        let before = saga.state.clone();
        let Ok(mut prepared) = self.advance(saga, Event::Late { step }, findings, hand_on) else { return Ok(Ok(())) };
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
    pub(super) async fn give_back(&self, rows: &[WorkRef]) {
        if rows.is_empty() {
            return;
        }
        if self.ask_to_the_end("give_back", || self.store.give_back(rows)).await.is_some() {
            self.leave_work(std::time::Duration::ZERO);
        }
    }

    /// Gives back what waited in a queue when it was closed.
    pub(super) async fn give_back_all(&self, commands: Vec<Command<S>>) {
        self.give_back(&refs(&commands)).await;
    }

    /// Changes that an operator or a claim decided on, with what follows.
    pub(super) async fn apply_prepared(
        self: &Arc<Self>,
        mut prepared: super::prepared::Prepared<S>,
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
                    self.give_back(&[successor.work]).await;
                }
                Err(error)
            }
        }
    }
}

/// What a command that vanished with its owner as often as it may be tried ended with.
pub(super) fn vanished<S: Store>(command: &Command<S>) -> Attempted {
    Attempted { ending: Ending::Vanished, findings: Findings { attempts: command.attempts, ..Findings::default() } }
}
