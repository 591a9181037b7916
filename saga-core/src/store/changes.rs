//! What is written for one saga in one commit.

use std::time::Duration;

use super::{
    Headers, HistoryEntry, MessageId, MessageKind, NewDeadLetter, NewSaga, NewWork, RecordedOutcome, SagaId, SagaRow,
    Status, StepRecord, Timestamp, WorkId, WorkRef,
};
use crate::key::{Key, StepId, Tenant};

/// Everything that one decision about one saga writes. It is applied whole or not at all.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The saga moves on. Nothing else is written when its version has moved.
    pub saga: Option<Advance>,
    /// A saga is started, with its commands. Nothing else is written when its key is taken. Only
    /// [`record`](super::Records::record) is given one, and its changes never advance a saga.
    pub start: Option<Box<NewSaga>>,
    /// Work rows that are deleted.
    pub finished: Vec<(WorkRef, Condition)>,
    /// Work rows that are deleted whatever their epoch, where they still exist: a waiting command that was answered.
    pub withdrawn: Vec<WorkId>,
    /// Work rows that are tried again later.
    pub postponed: Vec<Postponed>,
    /// Step records that are inserted.
    pub records: Vec<NewRecord>,
    /// Step records that are revised.
    pub revised: Vec<RevisedRecord>,
    /// Commands that are inserted.
    pub commands: Vec<NewWork>,
    /// Messages that leave this service.
    pub messages: Vec<NewMessage>,
    /// Messages that could not be handled.
    pub letters: Vec<NewDeadLetter>,
    /// What else is kept for who asks what happened.
    pub history: Vec<HistoryEntry>,
}

/// A saga moves on, by compare-and-set on its version. Its new version is `expected + 1`.
#[derive(Debug, Clone)]
pub struct Advance {
    /// The saga.
    pub id: SagaId,
    /// The version that the decision was made on.
    pub expected: u64,
    /// Where it stands now. The store writes down the time when it ends, and clears it when it is reopened.
    pub status: Status,
    /// The machine's state.
    pub state: Vec<u8>,
}

/// Under which condition a work row may be finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It exists with the epoch.
    Held,
    /// It exists with the epoch, and no late success was noted on it.
    NotLate,
}

/// A work row is tried again later. It becomes free, and keeps its epoch until it is claimed.
#[derive(Debug, Clone)]
pub struct Postponed {
    /// The row; it must exist with the epoch.
    pub work: WorkRef,
    /// How long from the statement until it is due.
    pub due_in: Duration,
    /// Attempts so far.
    pub attempts: u32,
    /// Whether an attempt ended without a definite answer.
    pub in_doubt: bool,
    /// What the last attempt said. When it is set for the first time, the row is `retrying since` this statement.
    pub error: Option<String>,
}

/// A step record that is inserted; there must be none under its step key.
#[derive(Debug, Clone)]
pub struct NewRecord {
    /// The saga.
    pub saga: SagaId,
    /// Whose saga it is.
    pub tenant: Tenant,
    /// The saga's key.
    pub key: Key,
    /// Which step.
    pub step: StepId,
    /// What became of it.
    pub outcome: RecordedOutcome,
    /// Its encoded output.
    pub output: Option<Vec<u8>>,
    /// Why it was not done, as JSON.
    pub error: Option<Vec<u8>>,
    /// The input that a mapping gave; nothing where the saga's own input was used.
    pub input: Option<Vec<u8>>,
    /// Its place in the order in which the saga's steps were recorded.
    pub position: u32,
    /// How many attempts it took.
    pub attempts: u32,
    /// How long the last attempt took.
    pub took: Duration,
}

impl StepRecord {
    /// A record as it is stored.
    pub fn recorded(new: NewRecord, at: Timestamp) -> Self {
        Self {
            step: new.step,
            outcome: new.outcome,
            output: new.output,
            error: new.error,
            input: new.input,
            position: new.position,
            attempts: new.attempts,
            recorded_at: at,
            took: new.took,
        }
    }
}

/// A step record changes, because an operator decided or a late fact came in.
#[derive(Debug, Clone)]
pub struct RevisedRecord {
    /// Whose saga it is.
    pub tenant: Tenant,
    /// The saga's key.
    pub key: Key,
    /// Which step.
    pub step: StepId,
    /// What it must be now.
    pub expected: RecordedOutcome,
    /// What it becomes.
    pub outcome: RecordedOutcome,
    /// The output that it gets.
    pub output: Option<Vec<u8>>,
}

/// A message that leaves this service.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// The same however often it is sent.
    pub id: MessageId,
    /// What it is.
    pub kind: MessageKind,
    /// Whose it is.
    pub tenant: Tenant,
    /// What it is about; the topic is made of it.
    pub aggregate_type: String,
    /// Of which of them it speaks: the ordering key. Messages with one ordering key are sent in the order of their positions.
    pub aggregate_id: String,
    /// The event's name.
    pub event_type: String,
    /// The encoded event.
    pub payload: Vec<u8>,
    /// Its place among the messages of its ordering key.
    pub position: u64,
    /// The lane it lies in: [`lane_of`](super::lane_of) of its ordering key.
    pub lane: u8,
    /// What else travels with it.
    pub headers: Headers,
    /// After how long it is read from its lane. Whoever wrote it sends it until then.
    pub due_in: Duration,
}

/// What became of one [`Changes`].
pub type Applied = Result<(), Miss>;

/// Why changes were not applied. Nothing of them was.
#[derive(Debug, Clone)]
pub enum Miss {
    /// The saga's version had moved, or the key of the saga to start is taken: this is the saga now.
    Saga(Box<SagaRow>),
    /// A work row is gone, or somebody else took it.
    Work(WorkId),
    /// There is a record under that step key already, or the one to revise is not as expected.
    Record(StepId),
    /// An older owner's success was noted on the work row, and the condition was [`Condition::NotLate`].
    Late {
        /// The row.
        work: WorkId,
        /// The step's encoded output.
        output: Vec<u8>,
    },
}
