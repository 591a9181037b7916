//! What is written for one saga in one commit.

use std::time::Duration;

use super::{
    Expiry, Headers, HistoryEntry, KeptLock, MessageId, MessageKind, NewDeadLetter, NewSaga, NewWork, RecordedOutcome,
    SagaId, SagaRow, Status, StepRecord, Timestamp, Unlock, WorkId, WorkRef, lane_of, service_topic,
};
use crate::key::{Key, StepId, Tenant};

/// Everything that one decision about one saga writes. The store applies it whole or not at all.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The saga advances. Nothing else is written when its version has moved.
    pub saga: Option<Advance>,
    /// A saga is started, with its commands. Nothing else is written when its key is taken. Only
    /// [`record`](super::Records::record) gets such changes, and they never advance a saga.
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
    pub dead_letters: Vec<NewDeadLetter>,
    /// Other entries for the saga's history.
    pub history: Vec<HistoryEntry>,
    /// Locks that the step transaction took, and that last until later changes end them. Only
    /// [`transact`](super::Store::transact) gets such changes.
    pub locked: Vec<KeptLock>,
    /// Semantic locks that end, and requests for some.
    pub unlocked: Vec<Unlock>,
}

/// A saga advances, by compare-and-set on its version. The new version is `expected + 1`.
#[derive(Debug, Clone)]
pub struct Advance {
    /// The saga.
    pub id: SagaId,
    /// The version that the decision was made on.
    pub expected: u64,
    /// The new status. The store writes the time when the saga ends, and clears it when the saga is reopened.
    pub status: Status,
    /// The machine's state.
    pub state: Vec<u8>,
    /// How long the saga is kept, if it ends with this advance and is not kept for ever.
    pub expiry: Option<Box<Expiry>>,
}

/// The condition under which a work row may be finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It exists with the epoch.
    Held,
    /// The row exists with the epoch, and no late success was noted on it.
    NotLate,
}

/// A work row is tried again later. It becomes free, and keeps its epoch until it is claimed.
#[derive(Debug, Clone)]
pub struct Postponed {
    /// The row; it must exist with the epoch.
    pub work: WorkRef,
    /// The time from this statement until the row is due.
    pub due_in: Duration,
    /// Attempts so far.
    pub attempts: u32,
    /// Whether an attempt ended without a definite answer.
    pub in_doubt: bool,
    /// The error of the last attempt. When it is set for the first time, the row is `retrying since` this statement.
    pub error: Option<String>,
}

/// A step record to insert. There must be none under its step key.
#[derive(Debug, Clone)]
pub struct NewRecord {
    /// The saga.
    pub saga: SagaId,
    /// The saga's tenant.
    pub tenant: Tenant,
    /// The saga's key.
    pub key: Key,
    /// The step.
    pub step: StepId,
    /// The outcome.
    pub outcome: RecordedOutcome,
    /// Its encoded output.
    pub output: Option<Vec<u8>>,
    /// The error if it was not done, as JSON.
    pub error: Option<Vec<u8>>,
    /// The input that a mapping made. `None` where the step got the saga's own input.
    pub input: Option<Vec<u8>>,
    /// Its position in the order in which the saga's steps were recorded.
    pub position: u32,
    /// How many attempts it took.
    pub attempts: u32,
    /// How long the last attempt took.
    pub took: Duration,
}

impl NewRecord {
    /// A record without an input, an output, an error or an attempt.
    pub(crate) fn new(
        saga: SagaId,
        tenant: &Tenant,
        key: &Key,
        step: StepId,
        outcome: RecordedOutcome,
        position: u32,
    ) -> Self {
        Self {
            saga,
            tenant: tenant.clone(),
            key: key.clone(),
            step,
            outcome,
            output: None,
            error: None,
            input: None,
            position,
            attempts: 0,
            took: Duration::ZERO,
        }
    }
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

/// A change of a step record, after an operator's decision or a late reply.
#[derive(Debug, Clone)]
pub struct RevisedRecord {
    /// The saga's tenant.
    pub tenant: Tenant,
    /// The saga's key.
    pub key: Key,
    /// The step.
    pub step: StepId,
    /// The outcome that it must have now.
    pub expected: RecordedOutcome,
    /// The new outcome.
    pub outcome: RecordedOutcome,
    /// The new output.
    pub output: Option<Vec<u8>>,
}

impl RevisedRecord {
    /// A record that gets another outcome, and keeps its output.
    pub(crate) fn new(
        tenant: &Tenant,
        key: &Key,
        step: StepId,
        expected: RecordedOutcome,
        outcome: RecordedOutcome,
    ) -> Self {
        Self { tenant: tenant.clone(), key: key.clone(), step, expected, outcome, output: None }
    }
}

/// A message that leaves this service.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// The same however often it is sent.
    pub id: MessageId,
    /// The kind.
    pub kind: MessageKind,
    /// The tenant.
    pub tenant: Tenant,
    /// What the message is about. The topic is made of it.
    pub aggregate_type: String,
    /// The ordering key: which one of them the message is about. Messages with one ordering key are sent in the order
    /// of their positions.
    pub aggregate_id: String,
    /// The event's name.
    pub event_type: String,
    /// The encoded event.
    pub payload: Vec<u8>,
    /// Its position among the messages of its ordering key.
    pub position: u64,
    /// Its lane: [`lane_of`](super::lane_of) the ordering key.
    pub lane: u8,
    /// The headers.
    pub headers: Headers,
    /// The time until the relay reads it from its lane. Until then the process that wrote it sends it.
    pub due_in: Duration,
}

impl NewMessage {
    /// An empty message to a service, under an ordering key of its own: nothing is promised about its order.
    pub(crate) fn to_service(kind: MessageKind, id: MessageId, tenant: &Tenant, service: &str) -> Self {
        let (topic, key) = (service_topic(service), id.to_string());
        Self { kind, ..Self::event(id, tenant, (&topic, &key), "", Vec::new()) }
    }

    /// An event on a topic, the first message under its ordering key.
    pub(crate) fn event(
        id: MessageId,
        tenant: &Tenant,
        (topic, key): (&str, &str),
        name: &str,
        payload: Vec<u8>,
    ) -> Self {
        Self {
            id,
            kind: MessageKind::Event,
            tenant: tenant.clone(),
            aggregate_type: topic.to_owned(),
            aggregate_id: key.to_owned(),
            event_type: name.to_owned(),
            payload,
            position: 1,
            lane: lane_of(tenant, topic, key),
            headers: Headers::default(),
            due_in: Duration::ZERO,
        }
    }
}

/// The result of applying one [`Changes`].
pub type Applied = Result<(), Miss>;

/// Why changes were not applied. None of them were.
#[derive(Debug, Clone)]
pub enum Miss {
    /// The saga's version had moved, or the key of the saga to start is taken. This is the saga now.
    Saga(Box<SagaRow>),
    /// The saga to advance does not exist: it was deleted since it was read.
    NoSaga(SagaId),
    /// A work row is gone, or another owner took it.
    Work(WorkId),
    /// There is already a record under that step key, or the record to revise is not as expected.
    Record(StepId),
    /// The success of an older owner was noted on the work row, and the condition was [`Condition::NotLate`].
    Late {
        /// The row.
        work: WorkId,
        /// The step's encoded output.
        output: Vec<u8>,
    },
}
