//! The status of a step, of its items and of its sub-saga.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::json;
use super::lock_status::{LockScope, LockStatus};
use super::outline::{Outline, OutlinedStep, WaitKind};
use crate::engine::outcome::Outcome;
use crate::key::{Key, StepId};
use crate::machine::{Phase, SagaState, StepPhase, StepState};
use crate::step::Rejection;
use crate::store::{
    Failing, HistoryKind, RecordedOutcome, Reported, SagaWithSteps, Status, StepRecord, Timestamp, WorkStatus,
};

/// Fifty years: a time beyond that stands for none.
const FAR_MICROS: i64 = 50 * 365 * 24 * 3_600 * 1_000_000;

/// A step of a saga.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StepStatus {
    /// The step's name.
    pub step: String,
    /// The steps that it follows: the step before it, or the last steps of the branches of the group before it.
    pub after: Vec<String>,
    /// Its phase. JSON has the [name](Self::phase_name) instead.
    #[serde(skip)]
    pub phase: StepPhase,
    /// The name of its phase, or `waiting` for a step that [waits](Self::waits_for), also for its lock.
    #[serde(rename = "phase")]
    pub phase_name: &'static str,
    /// The sub-saga of the step, once it was begun.
    pub child: Option<ChildStatus>,
    /// The names of its arms, if it is a choice.
    pub arms: Vec<String>,
    /// The arm that runs, once a choice was made.
    pub taken: Option<String>,
    /// The id of the signal that it waited for, once that has arrived.
    pub signal: Option<String>,
    /// What the step waits for, or waited for, if it only waits; it is due when it has waited long enough.
    pub wait: Option<WaitKind>,
    /// The semantic lock that the step takes, while the saga has it or waits for it; or the lock of the step itself, while it is
    /// called or waits for its lock.
    pub lock: Option<LockStatus>,
    /// How far its items are, if it runs for each item of a list, once there is a list.
    pub items: Option<ItemCounts>,
    /// Why an operator must decide about it, or about its undo. If several steps of a saga are stuck, in parallel branches,
    /// an operator's action is about the one that the outcome of the saga names; the others follow one by one.
    pub stuck: Option<String>,
    /// How many attempts were made, of the step and of its undos.
    pub attempts: u32,
    /// When its result was recorded.
    #[serde(serialize_with = "json::optional_time")]
    pub recorded_at: Option<Timestamp>,
    /// How long its last attempt took.
    #[serde(rename = "took_s", serialize_with = "json::optional_seconds")]
    pub took: Option<Duration>,
    /// When its undo was recorded.
    #[serde(serialize_with = "json::optional_time")]
    pub undone_at: Option<Timestamp>,
    /// Since when its attempts have failed, while it is retried.
    #[serde(serialize_with = "json::optional_time")]
    pub retrying_since: Option<Timestamp>,
    /// Whether it is [`Failing`]: it keeps being retried, and an operator should look at its error.
    pub failing: bool,
    /// When its next attempt is due, while it waits for that.
    #[serde(serialize_with = "json::optional_time")]
    pub due_at: Option<Timestamp>,
    /// Why it failed, or the error of its last attempt.
    pub error: Option<String>,
    /// The last progress report of the step or of its undo, while that is retried.
    pub progress: Option<StepProgress>,
}

/// The last progress report of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StepProgress {
    /// When it was written.
    #[serde(serialize_with = "json::time")]
    pub at: Timestamp,
    /// The report as JSON.
    pub report: String,
}

/// The sub-saga of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChildStatus {
    /// Its key, for its own status and control.
    pub key: Key,
    /// Its status; `None` until it is started.
    pub status: Option<Status>,
    /// How it ended, or why it is stuck.
    pub outcome: Option<Outcome>,
}

/// How far the items of a step are that runs for each item of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ItemCounts {
    /// How many there are.
    pub all: usize,
    /// How many are done and not undone.
    pub done: usize,
    /// How many were undone.
    pub undone: usize,
    /// How many have not begun.
    pub waiting: usize,
}

impl StepProgress {
    fn of(reported: &Reported) -> Self {
        Self { at: reported.at, report: String::from_utf8_lossy(&reported.progress).into_owned() }
    }

    /// The report as the step's own type.
    ///
    /// # Errors
    /// When the report is not a `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.report)
    }
}

impl StepStatus {
    /// The status of the step with this index.
    pub(in crate::engine::admin) fn of_step(
        outline: &Outline,
        index: usize,
        state: &SagaState,
        stored: &SagaWithSteps,
    ) -> Self {
        let step = &outline.steps[index];
        let phase = shown_phase(state, index);
        let is_waiting = step.wait.is_some() && phase == StepPhase::Started;
        let of_name = Self::of_name(&step.name, index, phase, state, stored);
        // A wait without a limit is due in a hundred years.
        let is_limited = |due: &Timestamp| step.wait.is_none() || due.0 - stored.read_at.0 < FAR_MICROS;
        let before = step.after.iter().filter_map(|before| Some(outline.steps.get(*before)?.name.clone()));
        Self {
            after: before.collect(),
            child: child_of(step, state.steps[index].phase, &stored.saga.key),
            arms: step.arms.clone(),
            taken: taken(step, stored),
            wait: step.wait,
            signal: (step.wait == Some(WaitKind::Signal)).then(|| signal_of(&step.name, stored)).flatten(),
            items: state.items_of(index).map(|items| ItemCounts::of(&state.steps[items])),
            phase_name: if is_waiting { "waiting" } else { phase.as_str() },
            due_at: of_name.due_at.filter(is_limited),
            ..of_name
        }
    }

    /// The status of the item with this index, of this step.
    pub(in crate::engine::admin) fn of_item(
        step: &OutlinedStep,
        item: usize,
        state: &SagaState,
        stored: &SagaWithSteps,
    ) -> Self {
        let name = StepId::of_item(&step.name, state.item_number(item).unwrap_or_default());
        Self::of_name(name.as_str(), item, state.steps[item].phase, state, stored)
    }

    /// What the records, the work row and the state say of the step or item with this name.
    fn of_name(name: &str, index: usize, phase: StepPhase, state: &SagaState, stored: &SagaWithSteps) -> Self {
        let parked = state.paused.as_ref().map(|pause| pause.parked.as_slice()).unwrap_or_default();
        let records = || stored.records.iter().filter(|record| record.step.step_and_item() == name);
        let done = records().find(|record| record.step.undo_round().is_none());
        let undone = records().rfind(|record| record.step.undo_round().is_some());
        let work = stored.work.iter().find(|work| work.step.step_and_item() == name);
        let attempts = records().map(|record| record.attempts).sum::<u32>() + work.map_or(0, |work| work.attempts);
        Self {
            step: name.to_owned(),
            after: Vec::new(),
            phase,
            phase_name: phase.as_str(),
            child: None,
            arms: Vec::new(),
            taken: None,
            signal: None,
            wait: None,
            lock: None,
            items: None,
            stuck: state.stuck_at(index).map(|stuck| stuck.reason.clone()),
            attempts,
            recorded_at: done.map(|record| record.recorded_at),
            took: done.map(|record| record.took),
            undone_at: undone.filter(|record| record.outcome == RecordedOutcome::Done).map(|record| record.recorded_at),
            retrying_since: work.and_then(|work| work.retrying_since),
            failing: work
                .is_some_and(|work| Failing::DEFAULT.is_met(work.attempts, work.retrying_since, stored.read_at)),
            // A row that waits for a resume has no time at which it is due.
            due_at: work
                .filter(|work| work.owner.is_none() && !parked.contains(&work.work.id.0))
                .map(|work| work.due_at),
            error: work.and_then(|work: &WorkStatus| work.error.clone()).or_else(|| done.and_then(reason)),
            progress: progress(name, index, state, stored),
        }
    }

    /// What the step waits for now, if it only waits and has begun to.
    pub fn waits_for(&self) -> Option<WaitKind> {
        self.wait.filter(|_| self.phase == StepPhase::Started)
    }

    /// Adds what the store knows of its lock. A step that waits for its lock has no time at which it is due.
    pub(in crate::engine::admin) fn set_lock(&mut self, lock: LockStatus) {
        if lock.scope == LockScope::Step && !lock.granted {
            (self.phase_name, self.due_at) = ("waiting", None);
        }
        self.lock = Some(lock);
    }

    /// Whether it is the status of one item of a list, whose name is `step#n`.
    pub fn is_item(&self) -> bool {
        self.step.contains('#')
    }
}

impl ItemCounts {
    fn of(items: &[StepState]) -> Self {
        let count = |phase| items.iter().filter(|item| item.phase == phase).count();
        Self {
            all: items.len(),
            done: count(StepPhase::Done),
            undone: count(StepPhase::Undone),
            waiting: count(StepPhase::Ready),
        }
    }
}

/// A step that runs for each item of a list has no effect of its own. In a compensated saga its phase follows from its
/// items.
fn shown_phase(state: &SagaState, step: usize) -> StepPhase {
    let phase = state.steps[step].phase;
    let Some(mut items) = state.items_of(step).filter(|_| state.phase == Phase::Compensated) else { return phase };
    match phase {
        StepPhase::FannedOut | StepPhase::Done if items.any(|item| state.steps[item].phase == StepPhase::Undone) => {
            StepPhase::Undone
        }
        StepPhase::FannedOut => StepPhase::Cancelled,
        _ => phase,
    }
}

/// The last report of a step or of its undo: from its row, or, if the step is stuck, from the state of the saga.
fn progress(name: &str, step: usize, state: &SagaState, stored: &SagaWithSteps) -> Option<StepProgress> {
    let is_of_step = |id: &StepId| id.step_and_item() == name;
    let on_row = stored.work.iter().find(|work| is_of_step(&work.step)).and_then(|work| work.reported.as_ref());
    let kept = || {
        let kept = state.reports.iter().rfind(|kept| kept.step == step)?;
        let stuck = stored
            .history
            .iter()
            .rfind(|(_, entry)| entry.kind == HistoryKind::Stuck && entry.step.as_ref().is_some_and(is_of_step));
        let at = stuck.map_or(stored.saga.advanced_at, |(at, _)| *at);
        Some(StepProgress { at, report: kept.report.clone() })
    };
    on_row.map(StepProgress::of).or_else(kept)
}

fn child_of(step: &OutlinedStep, phase: StepPhase, key: &Key) -> Option<ChildStatus> {
    let is_begun = !matches!(phase, StepPhase::Ready | StepPhase::NotTaken);
    (step.is_child && is_begun).then(|| ChildStatus { key: key.hosted(&step.name), status: None, outcome: None })
}

/// The arm that the record of a choice names.
fn taken(step: &OutlinedStep, stored: &SagaWithSteps) -> Option<String> {
    if step.arms.is_empty() {
        return None;
    }
    let record = stored.records.iter().find(|record| record.step.as_str() == step.name)?;
    serde_json::from_slice(record.output.as_deref()?).ok()?
}

/// A signal has a record of its own.
fn signal_of(name: &str, stored: &SagaWithSteps) -> Option<String> {
    let of_signal = StepId::of_item(name, 0);
    let record = stored.records.iter().find(|record| record.step == of_signal)?;
    serde_json::from_slice(record.output.as_deref()?).ok()
}

fn reason(record: &StepRecord) -> Option<String> {
    let reason: Rejection = serde_json::from_slice(record.error.as_deref()?).ok()?;
    Some(reason.message().to_owned())
}
