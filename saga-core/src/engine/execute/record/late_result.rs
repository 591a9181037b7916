//! Records what a worker that lost its lease knows of its command: a fact, and no decision.

use std::sync::Arc;
use std::time::Duration;

use super::attempt_recorder::AttemptRecorder;
use crate::engine::commit::changes;
use crate::engine::decide::late_success;
use crate::engine::instance::{AttemptDetails, AttemptResult, NextSlot, NextWork, SagaInstance, WorkItem};
use crate::key::StepId;
use crate::log;
use crate::machine::{Effect, Ending, Event, StepPhase};
use crate::store::{
    Applied, HistoryEntry, HistoryKind, Miss, RecordedOutcome, SagaWithSteps, StepRecord, Store, StoreError,
    StoreErrorKind, WorkKind,
};

/// What a worker that lost its lease knows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LateFinding {
    /// The step took effect.
    Success,
    /// A call ended without a definite answer, at this moment of the process clock.
    Unanswered { ended_at: Duration },
}

/// Why a late result is not recorded.
enum NotRecorded {
    /// The store failed: the worker tries again.
    ForNow(String),
    /// This process cannot decide about the saga as it is now, also not later.
    ForGood(String),
}

impl NotRecorded {
    fn of(error: &StoreError) -> Self {
        // To read it again would bring the same answer.
        let is_damaged = error.kind() == StoreErrorKind::Corrupt;
        if is_damaged { Self::ForGood(error.to_string()) } else { Self::ForNow(error.to_string()) }
    }
}

impl<S: Store> AttemptRecorder<S> {
    /// Handles the result of a command that another process has by now. No decision follows from it. But a success is a fact and
    /// is kept, and so is a call that may have taken effect.
    pub(crate) async fn lost_lease(self: &Arc<Self>, command: WorkItem<S>, attempted: AttemptResult) {
        if !command.effect().is_outside() || command.is_undo() {
            return;
        }
        let findings = attempted.findings;
        match attempted.ending {
            Ending::Done => {
                let noted = late_success::encode(&findings);
                let is_noted = self
                    .committer
                    .store_calls
                    .retry_store_to_the_end("note_late", || self.ctx.store.note_late(command.work.id, &noted))
                    .await;
                if is_noted == Some(false) {
                    self.record_late(command.saga, command.command, findings, LateFinding::Success).await;
                }
            }
            // The new owner knows that this call began, and waits for its end before an undo without an output.
            Ending::Erred { not_sent: false, .. } | Ending::Unstorable { .. }
                if command.effect() == Effect::External =>
            {
                let ended_at = self.ctx.env.now();
                self.record_late(command.saga, command.command, findings, LateFinding::Unanswered { ended_at }).await;
            }
            _ => {}
        }
    }

    /// Adds a fact to a saga that was decided without it, and retries until the store has it. What this process can never
    /// add is left to others.
    async fn record_late(
        self: &Arc<Self>,
        mut saga: SagaInstance<S>,
        order: crate::machine::Command,
        findings: AttemptDetails,
        fact: LateFinding,
    ) {
        let step = order.step();
        let (name, item, doing) = (saga.step(step).name, saga.state.item_number(step), saga.doing(step));
        let mut backoff = self.committer.store_calls.backoff(0);
        while !self.ctx.lifecycle.has_stopped() {
            let error = match self.record_late_once(&mut saga, (name, item), &findings, fact).await {
                Ok(Ok(()) | Err(Miss::Work(_) | Miss::Late { .. } | Miss::NoSaga(_))) => return,
                Ok(Err(Miss::Saga(_) | Miss::Record(_))) => None,
                Err(NotRecorded::ForNow(error)) => Some(error),
                Err(NotRecorded::ForGood(problem)) => {
                    match self.leave_to_others(&saga, &doing, &findings, fact, &problem).await {
                        Ok(()) | Err(NotRecorded::ForGood(_)) => return,
                        Err(NotRecorded::ForNow(error)) => Some(error),
                    }
                }
            };
            if let Some(error) = error {
                log::warn!(tenant = saga.tenant.as_str(), saga = %saga.key, step = name, error, "late result not recorded");
            }
            self.committer.store_calls.pause_for_store(&mut backoff).await;
        }
    }

    /// Gives up a result that this process can never record. A success is noted on the row that the step has by now, and a
    /// process that knows the saga's version takes the row. Without a row, the history of the saga tells the operator of it.
    async fn leave_to_others(
        &self,
        saga: &SagaInstance<S>,
        step: &StepId,
        findings: &AttemptDetails,
        fact: LateFinding,
        problem: &str,
    ) -> Result<(), NotRecorded> {
        let left = match fact {
            LateFinding::Success => self.leave_success(saga, step, findings, problem).await,
            LateFinding::Unanswered { .. } => Ok(()),
        };
        if !matches!(left, Err(NotRecorded::ForNow(_))) {
            let tenant = saga.tenant.as_str();
            log::error!(tenant, saga = %saga.key, %step, error = problem, "late result given up");
        }
        left
    }

    async fn leave_success(
        &self,
        saga: &SagaInstance<S>,
        step: &StepId,
        findings: &AttemptDetails,
        problem: &str,
    ) -> Result<(), NotRecorded> {
        let stored = self.ctx.store.saga_with_steps(&saga.tenant, &saga.key).await;
        let is_it = |stored: &SagaWithSteps| stored.saga.id == saga.id && !stored.saga.is_tombstone();
        let stored = stored.map_err(|error| NotRecorded::of(&error))?;
        let Some(stored) = stored.filter(is_it) else { return Ok(()) };
        let is_done = |record: &StepRecord| record.step == *step && record.outcome == RecordedOutcome::Done;
        if stored.records.iter().any(is_done) {
            return Ok(());
        }
        if let Some(row) = stored.work.iter().find(|row| row.kind == WorkKind::Do && row.step == *step) {
            let noted = late_success::encode(findings);
            let is_noted = self.ctx.store.note_late(row.work.id, &noted).await;
            if is_noted.map_err(|error| NotRecorded::of(&error))? {
                return Ok(());
            }
        }
        let entry = HistoryEntry {
            saga: saga.id,
            step: Some(step.clone()),
            kind: HistoryKind::Late,
            attempt: findings.attempts,
            detail: format!("it took effect, and the process that called it cannot record that: {problem}"),
        };
        let noted = self.committer.recorder.record(changes::note(entry)).await;
        // A miss says that the saga was purged meanwhile.
        noted.map(drop).map_err(|error| NotRecorded::ForNow(error.to_string()))
    }

    async fn record_late_once(
        self: &Arc<Self>,
        saga: &mut SagaInstance<S>,
        (name, item): (&str, Option<u32>),
        findings: &AttemptDetails,
        fact: LateFinding,
    ) -> Result<Applied, NotRecorded> {
        let row = self.ctx.store.saga(&saga.tenant, &saga.key).await.map_err(|error| NotRecorded::of(&error))?;
        // After a purge the key may be that of another saga.
        let Some(row) = row.filter(|row| row.id == saga.id && !row.is_tombstone()) else { return Ok(Ok(())) };
        let records = self.ctx.store.records_of(&saga.tenant, &saga.key).await;
        let records = records.map_err(|error| NotRecorded::of(&error))?;
        let definition = match self.ctx.definitions.get(&row.definition) {
            Some(definition) => Arc::clone(definition),
            None if row.definition == saga.definition.id => Arc::clone(&saga.definition),
            None => return Err(NotRecorded::ForGood(format!("{} is not registered here", row.definition))),
        };
        let given = saga.definition.shape.position(name).and_then(|step| saga.inputs.of(step).cloned());
        *saga = SagaInstance::of_row(&row, records.clone(), &definition).map_err(NotRecorded::ForGood)?;
        // A migration may have moved the step to another index.
        let step = definition.shape.position(name).and_then(|base| saga.state.index_of(base, item));
        let no_step = || NotRecorded::ForGood(format!("{} has no step `{name}`", definition.id));
        let step = step.ok_or_else(no_step)?;
        if let Some(given) = given.filter(|_| item.is_none() && saga.inputs.of(step).is_none()) {
            // A record of an older version does not have it, and neither has one of a step without a mapping that an operator gave another
            // input.
            saga.inputs.set(step, given);
        }
        let event = match fact {
            LateFinding::Success => Event::LateSuccess { step },
            LateFinding::Unanswered { ended_at }
                if self
                    .may_have_missed_undo(saga, step, &records, findings, ended_at)
                    .await
                    .map_err(NotRecorded::ForNow)? =>
            {
                Event::LateUnknown { step }
            }
            LateFinding::Unanswered { .. } => return Ok(Ok(())),
        };
        let ids = self.committer.store_calls.take_ids(saga.definition.width).await;
        let ids = ids.ok_or_else(|| NotRecorded::ForNow("no ids".to_owned()))?;
        let next_work = NextWork { ids: ids.start, slot: NextSlot::Nowhere };
        let before = saga.state.clone();
        let Ok(mut prepared) = self.decider.decide(saga, event, findings, next_work) else { return Ok(Ok(())) };
        if saga.state == before {
            return Ok(Ok(()));
        }
        let changes = prepared.take_changes();
        let applied = self.committer.recorder.record(changes).await;
        let applied = applied.map_err(|error| NotRecorded::ForNow(error.to_string()))?;
        if applied.is_ok() {
            self.committer.after_commit(prepared, None);
        }
        Ok(applied)
    }

    /// Whether an unanswered call may have taken effect after the step was undone. An undo waits until every call that keeps its
    /// time limit has ended. This call may have exceeded it, and ended after the undo began.
    pub(crate) async fn may_have_missed_undo(
        &self,
        saga: &SagaInstance<S>,
        step: usize,
        records: &[StepRecord],
        findings: &AttemptDetails,
        ended_at: Duration,
    ) -> Result<bool, String> {
        let stands = &saga.state.steps[step];
        match stands.phase {
            StepPhase::Undoing => Ok(findings.took > saga.step(step).settle_time()),
            StepPhase::Undone => {
                let undo = saga.doing(step).undone(stands.undo_round);
                let Some(record) = records.iter().find(|record| record.step == undo) else { return Ok(false) };
                let now = self.ctx.store.now().await.map_err(|error| error.to_string())?;
                let since = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
                let ended = now.0.saturating_sub(since(self.ctx.env.now().saturating_sub(ended_at)));
                Ok(ended > record.recorded_at.0.saturating_sub(since(record.took)))
            }
            _ => Ok(true),
        }
    }
}
