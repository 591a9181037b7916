//! What an operator does with many sagas: the filter, the action, the plan, and its results.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::machine::{Action, Event};
use crate::step::Rejection;
use crate::store::{SagaRow, Status};

/// The sagas that a plan is about: those that match every field that is set.
#[derive(Debug, Clone, Default)]
pub struct BatchFilter {
    /// Sagas of this status.
    pub status: Option<Status>,
    /// Sagas of definitions with this name.
    pub definition: Option<String>,
    /// Sagas that are stuck at this step, or that compensate or were compensated because of it.
    pub failed_step: Option<String>,
    /// Sagas that are stuck or compensate for a reason that contains this text.
    pub reason: Option<String>,
    /// Sagas about which nothing was decided for at least this time.
    pub idle_for: Option<Duration>,
    /// At most this number of sagas.
    pub limit: Option<usize>,
}

/// What a plan does with each saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BatchAction {
    /// Try again what is stuck.
    Retry,
    /// Make the next attempt due now.
    RetryNow,
    /// Skip what is stuck.
    Skip,
    /// End it as completed, in its present state.
    ForceCompleted,
    /// End it as compensated, in its present state.
    ForceCompensated,
    /// Cancel it.
    Cancel,
    /// Pause it.
    Pause,
    /// Resume it.
    Resume,
}

/// A plan as the operator saw it. It can be serialized, reviewed, shortened, and executed later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchPlan {
    /// The id of the plan, which the history of each saga names.
    pub id: String,
    /// What is done.
    pub action: BatchAction,
    /// The sagas that it is done with.
    pub sagas: Vec<PlannedAction>,
}

/// What would be done with one saga.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlannedAction {
    /// The saga's key.
    pub key: String,
    /// The revision at which it was seen. The plan acts on it at this revision only.
    pub revision: u64,
    /// Its status then.
    pub status: Status,
    /// The step that it is stuck at, or that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Why it is stuck, or compensates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why the action would be refused, if that is known already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

impl PlannedAction {
    /// The action on the saga of this row. It names no step, reason or refusal.
    pub(super) fn on(row: &SagaRow) -> Self {
        let (key, revision, status) = (row.key.to_string(), row.version, row.status);
        Self { key, revision, status, step: None, reason: None, refusal: None }
    }
}

/// The result for one saga of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchResult {
    /// This call acted on it.
    Done,
    /// An earlier execution of the plan acted on it.
    Already,
    /// Nothing was done: the saga moved since, or the action is not possible for it.
    Refused(String),
    /// The store failed; execute the plan again.
    Failed(String),
}

/// The result of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchSummary {
    /// How many sagas this call acted on.
    pub done: usize,
    /// How many sagas earlier executions acted on.
    pub already: usize,
    /// The keys of the sagas that were refused, and why.
    pub refused: Vec<(String, String)>,
    /// The keys of the sagas for which the store failed, and how.
    pub failed: Vec<(String, String)>,
}

impl BatchAction {
    /// What the machine would be told.
    pub(super) fn event(self) -> Option<Event> {
        let force = |completed| Event::Operator(Action::Force { completed, reason: String::new() });
        Some(match self {
            Self::Retry => Event::Operator(Action::Retry),
            Self::RetryNow => return None,
            Self::Skip => Event::Operator(Action::Skip),
            Self::ForceCompleted => force(true),
            Self::ForceCompensated => force(false),
            Self::Cancel => Event::CancelRequested { reason: Rejection::new(""), has_begun: true },
            Self::Pause => Event::Paused { by: None, reason: String::new() },
            Self::Resume => Event::Resumed,
        })
    }
}
