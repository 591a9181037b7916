use std::collections::BTreeMap;

use anyhow::Context as _;
use saga_core::store::{RecordedOutcome, Status};
use serde::Deserialize;
use serde_json::Value;

/// A saga as it was archived.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ArchivedSaga {
    /// The id of its row.
    pub id: i64,
    /// Its key.
    pub key: String,
    /// The name of its definition.
    pub saga: String,
    status: String,
    /// How many decisions about it had been committed.
    pub revision: u64,
    /// What it was started with.
    pub input: Value,
    /// The step records, in the order of their positions.
    pub records: Vec<ArchivedRecord>,
    history: Vec<ArchivedEntry>,
}

/// A step record as it was archived.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ArchivedRecord {
    step: String,
    outcome: String,
    /// What the step returned.
    pub output: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct ArchivedEntry {
    kind: String,
    step: Option<String>,
}

impl ArchivedSaga {
    /// Reads one line of an archive.
    pub fn parse(line: &str) -> anyhow::Result<Self> {
        serde_json::from_str(line).context("this is no archived saga")
    }

    /// How it ended.
    pub fn status(&self) -> anyhow::Result<Status> {
        let status = Status::ALL.into_iter().find(|status| status.as_str() == self.status);
        status.with_context(|| format!("{} was archived as {}", self.key, self.status))
    }

    /// Whether the success of that step came when the step had been decided without it.
    pub fn is_late(&self, record: &ArchivedRecord) -> bool {
        self.history.iter().any(|entry| entry.kind == "late" && entry.step.as_ref() == Some(&record.step))
    }

    /// Of each saga what was archived of it last.
    pub fn latest(all: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut latest: BTreeMap<i64, Self> = BTreeMap::new();
        for saga in all {
            if latest.get(&saga.id).is_none_or(|known| known.revision <= saga.revision) {
                latest.insert(saga.id, saga);
            }
        }
        latest.into_values().collect()
    }
}

impl ArchivedRecord {
    /// The name of its step.
    pub fn step(&self) -> &str {
        self.step.split_once(':').map_or(&self.step, |(step, _)| step)
    }

    /// Whether the step was undone.
    pub fn is_undo(&self) -> bool {
        self.step.contains(':')
    }

    /// What became of it.
    pub fn outcome(&self) -> anyhow::Result<RecordedOutcome> {
        RecordedOutcome::parse(&self.outcome).with_context(|| format!("{} was archived as {}", self.step, self.outcome))
    }
}
