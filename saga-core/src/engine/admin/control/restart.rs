//! Restarts: a new saga that begins at a step of a saga that ended.

use std::time::Duration;

use super::saga_control::SagaControl;
use crate::engine::admin::admin_context::{AdminContext, refused};
use crate::engine::admin::audit::AuditEntry;
use crate::engine::admin::tenant_store::TenantStore;
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::decide::{StartTiming, deadline_of, deadline_row};
use crate::engine::instance::{AttemptDetails, NextSlot, NextWork, in_flight};
use crate::key::Key;
use crate::machine::{Event, Items, SagaState, StepPhase, Timer};
use crate::saga::{Definition, StepUndo};
use crate::step::Rejection;
use crate::store::{
    HistoryKind, Miss, NewSaga, RecordedOutcome, SagaId, SagaRow, SagaWithSteps, Status, StepRecord, Store, WorkId,
};

/// The event name in the history of the new saga.
const TAKEN_OVER: &str = "taken over";

/// The outcome of a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartOutcome {
    /// This call started the new saga.
    Begun,
    /// An earlier call had started it. Nothing was changed.
    Already,
}

impl<S: Store> SagaControl<S> {
    /// Restarts the saga, which has ended, as a new saga with its own key and the same input. The new saga begins at the
    /// step `from` and takes over the outputs of the steps before it.
    ///
    /// The effects that are taken over belong to the old saga. When the new saga compensates, it undoes only its own
    /// effects; so it can be restarted at the same step in turn. The history of each saga names the other one.
    ///
    /// The new saga has as much time until its deadline as the old one had, counted from the restart: the time that
    /// [its start gave it](crate::engine::StartSaga::within), or the one in the definition.
    ///
    /// # Errors
    /// When the old saga has not ended; when a step before `from` was undone, has no effect that stands, or may have happened
    /// or been undone, or not; when the new key belongs to another saga, or is too long for the steps of its sub-sagas; when the
    /// definition is not known here; or when the store fails.
    ///
    /// # Cancel safety
    /// When dropped, the saga was started or not; the same call again says which.
    ///
    /// # Examples
    /// ```
    /// use saga_core::engine::RestartOutcome;
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::{Outcome, Output, Runtime, Saga, StepError, saga_step};
    ///
    /// #[saga_step(no_compensation)]
    /// async fn draw_up(year: u32) -> Result<String, StepError> {
    ///     Ok(format!("report of {year}"))
    /// }
    ///
    /// #[saga_step]
    /// async fn send(_year: u32, Output(_report): Output<draw_up>) -> Result<(), StepError> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let report = Saga::named("report").input::<u32>().step::<draw_up>().step::<send>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&report).start().await?;
    /// runtime.start(&report, "report-2025", 2025).await?.outcome().await?;
    ///
    /// // The mail was lost on its way: it is sent once more, and not drawn up again.
    /// let report = runtime.admin().actor("ann").control("report-2025");
    /// let restart = report.restart("send", "report-2025-again", "the mail was lost").await?;
    /// assert_eq!(restart, RestartOutcome::Begun);
    /// let again = runtime.attach("report-2025-again").await?;
    /// assert!(matches!(again.outcome().await?, Outcome::Completed { .. }));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn restart(
        &self,
        from: &str,
        new_key: impl AsRef<str>,
        reason: &str,
    ) -> Result<RestartOutcome, RuntimeError> {
        outside_step()?;
        let (key, new_key) = (Key::from_stored(&self.key)?, Key::new(new_key.as_ref())?);
        let ctx = &self.ctx;
        let entry = ctx.audit_entry("restart", reason);
        let entry = AuditEntry { step: Some(from.to_owned()), saga: Some(new_key.to_string()), ..entry };
        if let Some(problem) = entry.problem() {
            return Err(refused(&key, problem));
        }
        // This is checked first, since the old saga may have changed after it was restarted.
        if is_restarted(ctx, &key, from, &new_key).await? {
            return Ok(RestartOutcome::Already);
        }
        let old = ctx.stored(&key, self.seen).await?;
        let definition = ctx.definition_of(&old.saga)?.clone();
        if let Some(longest) = definition.step_key_bytes_max() {
            new_key.check_length_with(longest, &old.saga.tenant)?;
        }
        let state = ctx.instance(&old)?.state;
        let step = check(&old.saga, &state, &definition, from)?;
        let is_not_taken = |&index: &usize| state.steps[index].phase == StepPhase::NotTaken;
        if is_not_taken(&step) {
            return Err(refused(
                &key,
                format!(
                    "its step `{from}` stands in an arm that was not taken; begin with the choice, or in front of it"
                ),
            ));
        }
        let (not_taken, taken): (Vec<usize>, Vec<usize>) =
            definition.shape.before(step).into_iter().partition(is_not_taken);
        let before = taken_over_before(&old, &definition);
        let records = taken
            .iter()
            .map(|&index| {
                let is_anothers = before.contains(&index);
                let record = standing(&old, &state, &definition, (index, step), is_anothers);
                record.map_err(|problem| refused(&key, problem))
            })
            .collect::<Result<Vec<_>, _>>()?;

        let ids = ctx.take_ids(definition.width + 2).await?;
        let mut new = fresh(&old.saga, &definition, SagaId(ids.start), new_key.clone());
        let mut saga = in_flight(&definition, &new).map_err(|_| refused(&key, "its steps cannot be read"))?;
        // What is decided now goes into its start, by which it gets its first version.
        saga.version = 0;
        let when = StartTiming { within: state.within, ..StartTiming::default() };
        let deadline = deadline_of(&definition, &mut saga.state, when, Timer::of(WorkId(ids.end - 1)));
        for record in &records {
            saga.remember(StepRecord { outcome: RecordedOutcome::Skipped, input: None, ..(*record).clone() });
        }
        let next_work = NextWork { ids: ids.start + 1, slot: NextSlot::Nowhere };
        let decided = ctx.decider()?.decide(
            &mut saga,
            Event::Restarted { steps: taken, not_taken },
            &AttemptDetails::default(),
            next_work,
        );
        let mut pending = decided.map_err(|refusal| refused(&key, refusal.to_string()))?;
        let whose = Rejection::new(format!("taken over from the saga `{key}`"));
        // The other records are of what the new saga has decided already: a choice, or an empty list.
        for written in &mut pending.changes.records {
            let Some(record) = records.iter().find(|record| record.step == written.step) else { continue };
            written.error = serde_json::to_vec(&whose).ok();
            written.output.clone_from(&record.output);
            written.took = Duration::ZERO;
        }
        // It may begin after its pivot.
        let deadline = deadline.filter(|_| saga.state.deadline.is_some());
        let first = pending.changes.commands.first();
        let row = first.zip(deadline).map(|(first, deadline)| deadline_row(deadline, Duration::ZERO, first));
        pending.changes.commands.extend(row);
        // The decision is part of the start.
        if let Some(advance) = pending.changes.saga.take() {
            (new.status, new.state) = (advance.status, saga.state.encode());
        }
        let taken_over = AuditEntry { action: TAKEN_OVER.to_owned(), saga: Some(key.to_string()), ..entry.clone() };
        pending.changes.history.extend([entry.entry(old.saga.id), taken_over.entry(new.id)]);
        pending.changes.start = Some(Box::new(new));
        match ctx.commit(&key, pending).await? {
            Ok(()) => Ok(RestartOutcome::Begun),
            // A saga of that key has records of its own.
            Err(Miss::Saga(_) | Miss::Record(_)) if is_restarted(ctx, &key, from, &new_key).await? => {
                Ok(RestartOutcome::Already)
            }
            Err(Miss::Saga(_) | Miss::Record(_)) => {
                let taken = "belongs to another saga; give the new one a key of its own";
                Err(refused(&key, format!("the key `{new_key}` {taken}")))
            }
            Err(miss) => Err(refused(&key, format!("it was not restarted: {miss:?}"))),
        }
    }
}

/// Whether the saga of the new key was started in place of this one, at this step.
async fn is_restarted<S: Store>(
    ctx: &AdminContext<S>,
    old: &Key,
    from: &str,
    new_key: &Key,
) -> Result<bool, RuntimeError> {
    let TenantStore { store, tenant, .. } = &ctx.tenant_store;
    let Some(new) = store.saga_with_steps(tenant, new_key).await? else { return Ok(false) };
    let is_from = |act: &AuditEntry| act.saga.as_deref() == Some(old.as_str()) && act.step.as_deref() == Some(from);
    let mut acts = new.history.iter().map(|(_, entry)| AuditEntry::read(&entry.detail));
    Ok(acts.any(|act| act.action == TAKEN_OVER && is_from(&act)))
}

/// The index of the step `from`, if a new saga can begin there in place of this one.
fn check<S: Store>(
    old: &SagaRow,
    state: &SagaState,
    definition: &Definition<S>,
    from: &str,
) -> Result<usize, RuntimeError> {
    let refuse = |problem: String| Err(refused(&old.key, problem));
    if state.caller.is_some() {
        return refuse("it is a step of another service's saga: restart that saga".to_owned());
    }
    if let Some((outer, _)) = old.key.of_step() {
        return refuse(format!("it is a step of the saga `{outer}`: restart that saga"));
    }
    if !old.status.is_ended() {
        return refuse(format!(
            "it has not ended, it is {}; end it first, by a cancel or by force, or let it come to its end",
            old.status
        ));
    }
    definition.shape.position(from).ok_or_else(|| {
        let names: Vec<String> = definition.steps.iter().map(|step| format!("`{}`", step.name)).collect();
        refused(&old.key, format!("it has no step `{from}`; its steps are {}", names.join(", ")))
    })
}

/// The steps that this saga itself took over, if it is a restart: their effects belong to the earlier saga, and stay however
/// this one ended.
fn taken_over_before<S: Store>(old: &SagaWithSteps, definition: &Definition<S>) -> Vec<usize> {
    let acts = old.history.iter().filter(|(_, entry)| entry.kind == HistoryKind::Operator);
    let taken_over = acts.map(|(_, entry)| AuditEntry::read(&entry.detail)).find(|act| act.action == TAKEN_OVER);
    let from = taken_over.and_then(|act| definition.shape.position(act.step.as_deref()?));
    from.map(|from| definition.shape.before(from)).unwrap_or_default()
}

/// The record of a step that a saga which begins at `from` takes over; its effect was not undone.
fn standing<'a, S: Store>(
    old: &'a SagaWithSteps,
    state: &SagaState,
    definition: &Definition<S>,
    (index, from): (usize, usize),
    is_anothers: bool,
) -> Result<&'a StepRecord, String> {
    let (step, name) = (&definition.steps[index], definition.steps[index].name);
    let record = old.records.iter().find(|record| record.step == step.doing);
    let outcome = record.map(|record| record.outcome);
    let again = "start it anew under another key";
    let earlier = "restart it from there, or from an earlier step";
    let releases = |step: usize| definition.shape.steps[step].releases.contains(&name);
    let is_ended = (0..from).any(|step| releases(step) && definition.shape.is_behind(from, step));
    let has_lock = definition.shape.is_lock(index) && !is_ended;
    if has_lock || step.saga().is_some_and(|child| child.takes_locks) {
        return Err(format!("its semantic lock of the step `{name}` ended with it; {earlier}"));
    }
    // The phase of a step that runs for each item of a list follows from its items.
    let items = state.items.iter().filter(|items| items.step == index).flat_map(Items::range);
    let items: Vec<usize> = items.collect();
    let phases: Vec<StepPhase> = items.iter().map(|item| state.steps[*item].phase).collect();
    let undone = [StepPhase::Undone, StepPhase::Undoing, StepPhase::UndoSkipped];
    let phase = undone.into_iter().find(|undone| phases.contains(undone)).unwrap_or(state.steps[index].phase);
    // The outcome of an external undo is unknown if an operator skipped it. A transactional undo that was skipped
    // left no effect, and neither did an undo that had not begun when the saga was ended by force.
    let has_begun = items.iter().chain([&index]).any(|step| state.steps[*step].undo_round > 0);
    let is_undo_definite = !has_begun || matches!(step.undo, Some((StepUndo::Transaction(_), _)));
    let record = match (phase, outcome) {
        (StepPhase::Skipped, Some(RecordedOutcome::Skipped)) if is_anothers => record,
        (StepPhase::UndoSkipped, _) if !is_undo_definite => {
            return Err(format!(
                "it is unknown whether the undo of its step `{name}` happened, so that it cannot be taken over; {again}"
            ));
        }
        (StepPhase::Done | StepPhase::UndoSkipped, Some(RecordedOutcome::Done)) => record,
        // An operator who ends a saga as compensated does not say that its stuck steps are done.
        (StepPhase::Skipped, Some(RecordedOutcome::Skipped | RecordedOutcome::Done))
            if old.saga.status == Status::Completed =>
        {
            record
        }
        (StepPhase::Undone | StepPhase::Undoing, _) => {
            return Err(format!("its step `{name}` was undone, so that nothing of it can be taken over; {again}"));
        }
        (_, Some(RecordedOutcome::Unknown)) | (StepPhase::Unknown | StepPhase::Started, _) => {
            return Err(format!(
                "it is unknown whether its step `{name}` happened, so that it cannot be taken over; {again}"
            ));
        }
        _ => return Err(format!("its step `{name}` did not take effect, so that it cannot be taken over; {earlier}")),
    };
    let record = record.ok_or_else(|| format!("there is no record of its step `{name}`; {again}"))?;
    let is_run = |later: usize| later == from || definition.shape.is_behind(later, from);
    let mut run = (0..definition.steps.len()).filter(|&later| is_run(later)).map(|later| &definition.steps[later]);
    match run.find(|later| record.output.is_none() && later.takes_output_of(name)) {
        None => Ok(record),
        Some(taker) => Err(format!(
            "the step `{}` takes the output of `{name}`, which was skipped without one; {earlier}",
            taker.name
        )),
    }
}

fn fresh<S: Store>(old: &SagaRow, definition: &Definition<S>, id: SagaId, key: Key) -> NewSaga {
    let state = SagaState::new(definition.steps.len());
    NewSaga {
        input: old.input.clone(),
        input_hash: old.input_hash.clone(),
        state: state.encode(),
        ..NewSaga::new(id, &old.tenant, key, definition.id.clone(), definition.digest)
    }
}
