//! The status of a saga, as a query returns it.

use serde::Serialize;

use super::json;
use super::outline::Outline;
use super::step_status::StepStatus;
use crate::engine::admin::audit::AuditEntry;
use crate::engine::outcome::{Outcome, outcome_by};
use crate::key::{Key, StepId, Tenant};
use crate::machine::{SagaState, StepPhase};
use crate::store::{HistoryEntry, HistoryKind, SagaId, SagaRow, SagaWithSteps, Status, Timestamp, WorkKind};

/// A saga in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SagaSummary {
    /// The saga's row; a list continues after it.
    pub id: SagaId,
    /// The tenant that the saga belongs to.
    pub tenant: Tenant,
    /// The saga's key.
    pub key: Key,
    /// The definition's name.
    pub saga: String,
    /// The definition's version.
    pub version: u32,
    /// Its status.
    pub status: Status,
    /// How it ended, or why it is stuck; `None` if the definition is not known here.
    pub outcome: Option<Outcome>,
    /// Who paused it, and why; `None` if the definition is not known here.
    pub paused: Option<PausedBy>,
    /// When it was started.
    #[serde(serialize_with = "json::time")]
    pub started_at: Timestamp,
    /// When it was last advanced.
    #[serde(serialize_with = "json::time")]
    pub advanced_at: Timestamp,
    /// When it ended.
    #[serde(serialize_with = "json::optional_time")]
    pub ended_at: Option<Timestamp>,
    /// The reason why this process does nothing of the saga: its definition is not registered here.
    pub waits_for: Option<String>,
    /// The saga in the same store that it is a step of, if it is one.
    pub step_of: Option<Key>,
}

/// Who paused a saga, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PausedBy {
    /// The actor, if one was named.
    pub actor: Option<String>,
    /// Why.
    pub reason: String,
    /// Since when; `None` in a list.
    #[serde(serialize_with = "json::optional_time")]
    pub since: Option<Timestamp>,
}

/// A saga, step by step.
///
/// It is written as one JSON object: the fields of the summary, `revision`, `steps`, `deadline` and `history`. Times are RFC 3339
/// in UTC, durations are seconds, and what is absent is `null`. Later versions only add fields.
///
/// ```
/// # use saga_core::memory::MemoryStore;
/// # use saga_core::{Runtime, Saga, StepError, saga_step};
/// # #[saga_step(no_compensation)]
/// # async fn greet(_name: String) -> Result<(), StepError> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let greeting = Saga::named("greeting").input::<String>().step::<greet>().build()?;
/// # let runtime = Runtime::builder(MemoryStore::new()).saga(&greeting).start().await?;
/// # runtime.start(&greeting, "guest-1", "Ada".to_owned()).await?.outcome().await?;
/// let status = runtime.status("guest-1").await?.expect("it was started");
/// let json = serde_json::to_value(&status)?;
/// assert_eq!(json["status"], "completed");
/// assert_eq!(json["outcome"]["kind"], "completed");
/// assert_eq!(json["steps"][0]["step"], "greet");
/// assert_eq!(json["steps"][0]["phase"], "done");
/// # runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SagaStatus {
    /// The saga as a list shows it.
    #[serde(flatten)]
    pub summary: SagaSummary,
    /// How many decisions about it were committed. An operator can act
    /// [at this revision](crate::engine::admin::SagaControl::at_revision) only.
    pub revision: u64,
    /// The steps in the order of the definition; none of a tombstone. A step that runs for each item of a list is followed by those of its items
    /// that are under way, or that failed.
    pub steps: Vec<StepStatus>,
    /// When the saga starts compensating if it has not reached its pivot; `None` if it has no deadline.
    #[serde(serialize_with = "json::optional_time")]
    pub deadline: Option<Timestamp>,
    /// What else happened, oldest first.
    pub history: Vec<HistoryEvent>,
}

/// An entry in the history of a saga: what happened to it beside the results of its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HistoryEvent {
    /// When.
    #[serde(serialize_with = "json::time")]
    pub at: Timestamp,
    /// What.
    #[serde(serialize_with = "json::history_kind")]
    pub kind: HistoryKind,
    /// The step or undo that it is about.
    pub step: Option<StepId>,
    /// The attempt that it is about, or 0.
    pub attempt: u32,
    /// What happened, in words.
    pub detail: String,
    /// The operator's action, if the event is one.
    pub audit: Option<AuditEntry>,
}

impl SagaSummary {
    pub(crate) fn of(row: SagaRow, outline: Option<&Outline>) -> Self {
        let state = outline.and_then(|outline| {
            let state = SagaState::decode(&row.state, outline.steps.len()).ok()?;
            Some((outcome_by(|step| outline.steps.get(step).map_or("", |step| &step.name), &state), state.paused))
        });
        let tombstone = Outcome::of_tombstone(&row);
        let (outcome, pause) = state.unwrap_or((tombstone, None));
        let paused = pause.map(|pause| PausedBy { actor: pause.by, reason: pause.reason, since: None });
        let is_known = outline.is_some_and(|outline| outline.is_registered);
        let waits_for = (!is_known && !row.status.is_ended())
            .then(|| format!("{} is not registered here, so nothing of it is done by this process", row.definition));
        let is_saga = !row.definition.name.contains(['/', '#']);
        Self {
            waits_for,
            step_of: row.key.of_step().filter(|_| is_saga).map(|(key, _)| key),
            id: row.id,
            tenant: row.tenant,
            key: row.key,
            saga: row.definition.name.to_string(),
            version: row.definition.version,
            status: row.status,
            outcome,
            paused,
            started_at: row.started_at,
            advanced_at: row.advanced_at,
            ended_at: row.ended_at,
        }
    }
}

impl SagaStatus {
    pub(crate) fn of(stored: SagaWithSteps, outline: &Outline) -> Result<Self, String> {
        let steps = if stored.saga.is_tombstone() { Vec::new() } else { steps_of(&stored, outline)? };
        let deadline = stored.work.iter().find(|work| work.kind == WorkKind::Deadline).map(|work| work.due_at);
        let history: Vec<HistoryEvent> =
            stored.history.into_iter().map(|(at, entry)| HistoryEvent::of(at, entry)).collect();
        let revision = stored.saga.version;
        let mut summary = SagaSummary::of(stored.saga, Some(outline));
        if let Some(paused) = &mut summary.paused {
            let paused_at = history.iter().rfind(|entry| entry.audit.as_ref().is_some_and(|act| act.action == "pause"));
            paused.since = paused_at.map(|entry| entry.at);
        }
        Ok(Self { summary, revision, steps, deadline, history })
    }
}

fn steps_of(stored: &SagaWithSteps, outline: &Outline) -> Result<Vec<StepStatus>, String> {
    let state = SagaState::decode(&stored.saga.state, outline.steps.len())?;
    let mut steps = Vec::with_capacity(outline.steps.len());
    for (index, step) in outline.steps.iter().enumerate() {
        steps.push(StepStatus::of_step(outline, index, &state, stored));
        let is_seen = |phase| !matches!(phase, StepPhase::Ready | StepPhase::Done | StepPhase::Undone);
        for item in state.items_of(index).unwrap_or_default().filter(|&item| is_seen(state.steps[item].phase)) {
            steps.push(StepStatus::of_item(step, item, &state, stored));
        }
    }
    Ok(steps)
}

impl HistoryEvent {
    fn of(at: Timestamp, entry: HistoryEntry) -> Self {
        let act = (entry.kind == HistoryKind::Operator).then(|| AuditEntry::read(&entry.detail));
        let detail = act.as_ref().map_or(entry.detail, ToString::to_string);
        Self { at, kind: entry.kind, step: entry.step, attempt: entry.attempt, detail, audit: act }
    }
}
