//! How everything stood in the end.

use serde::{Deserialize, Serialize};

use super::plan::Op;

/// How a saga stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Standing {
    /// Every step is done.
    Completed,
    /// What took effect is undone.
    Compensated,
    /// It needs a person.
    Stuck,
    /// It has not ended.
    Unfinished,
    /// There is no such saga.
    Absent,
}

/// How a saga stood in the end, as the engine tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Final {
    /// How it stands.
    pub standing: Standing,
    /// Which variant is stored.
    pub variant: Option<u8>,
    /// The step records, each of the service that did the step.
    pub records: Vec<RecordSeen>,
    /// What the saga's own service has written down of steps that others did.
    pub told: Vec<RecordSeen>,
    /// The choices that were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<ChosenSeen>,
    /// What the step that waits for a signal went on with, if it did: the signal's content, and 0 where its time was over.
    #[serde(default)]
    pub signal: Option<u64>,
    /// When it was called off for its deadline, if it was: in microseconds of the run.
    #[serde(default)]
    pub overdue_at: Option<u64>,
}

impl Final {
    /// A saga that was never stored.
    pub const ABSENT: Self = Self {
        standing: Standing::Absent,
        variant: None,
        records: Vec::new(),
        told: Vec::new(),
        chosen: Vec::new(),
        signal: None,
        overdue_at: None,
    };
}

/// What is recorded of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenSeen {
    /// The choice's name.
    pub choice: String,
    /// The arm that runs, if one does.
    pub arm: Option<String>,
}

/// A step record, as the engine tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordSeen {
    /// Which step.
    pub step: u8,
    /// Do or undo.
    pub op: Op,
    /// What became of it.
    pub outcome: Recorded,
    /// The call whose output was recorded. An undo has no output.
    pub call: Option<u64>,
    /// Whether the success came in after the step had been decided without it. Its events are sent only if the saga
    /// still went forward.
    pub is_late: bool,
    /// Its place among the records of the saga.
    pub position: u32,
}

/// What a step record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Recorded {
    /// It took effect.
    Done,
    /// It certainly did not, by its own word, for want of attempts, or because it was barred.
    NotDone,
    /// It may have.
    Unknown,
    /// An operator went past it.
    Skipped,
}

/// What else was there in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    /// Messages that still wait to be sent.
    pub outbox: u64,
    /// Work rows of sagas that have ended.
    pub work_of_ended: u64,
    /// Sagas that wait for nothing.
    pub forgotten: u64,
    /// Messages that a receiver said it had, and that its service does not know.
    pub unknown_messages: u64,
    /// Dead letters that wait for a person.
    pub letters: u64,
    /// Work rows of several services that are left where all is over.
    pub work: u64,
    /// Sagas that neither the plan nor a client knows.
    pub strangers: u64,
    /// Steps that are still kept by hosts which were told that their sagas are closed, and have had the time to purge them.
    #[serde(default)]
    pub hosted_left: u64,
    /// Tasks of the engine that panicked.
    pub panics: Vec<String>,
    /// Faults that may have made the engine run something once more without counting it, where it is not known when they
    /// happened. The others are entries, [`What::Repeated`](super::What::Repeated).
    pub repeats: u32,
}
