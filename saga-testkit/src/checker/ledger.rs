//! What was planned, what was seen, and what stood there in the end.

use serde::{Deserialize, Serialize};

/// All that is known of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The sagas, by tenant and key; entries name them by their place here.
    pub sagas: Vec<SagaPlan>,
    /// What was seen, in the order in which it happened.
    pub entries: Vec<Entry>,
    /// How each saga stood in the end, in the order of `sagas`.
    pub finals: Vec<Final>,
    /// What else was there in the end.
    pub rest: Rest,
}

/// A tenant's key, and what clients may try to start under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SagaPlan {
    /// Whose it is.
    pub tenant: String,
    /// The saga's key.
    pub key: String,
    /// Whether its client takes it back, whatever becomes of it.
    pub is_taken_back: bool,
    /// When it begins, and how long it has.
    #[serde(default)]
    pub time: SagaTime,
    /// The payloads and definitions that clients offer under this key. At most one of them is ever accepted.
    pub variants: Vec<Variant>,
}

/// When a saga begins, and how long it has, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SagaTime {
    /// How long after its start it begins.
    pub begins_in: u64,
    /// How long it then has until its pivot.
    pub within: Option<u64>,
}

/// What stands between a step and those that it comes after, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nap {
    /// How long it lasts.
    pub lasts: u64,
    /// The moment of the run at which it ends, if that is later.
    pub until: u64,
}

/// One thing that a client may start under a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// The definition's name.
    pub definition: String,
    /// Its steps in order.
    pub steps: Vec<StepPlan>,
}

/// A step as its author wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPlan {
    /// Its name.
    pub name: String,
    /// What it acts on.
    pub kind: Kind,
    /// The number of the service that does it, where that is not the saga's own.
    pub host: Option<u8>,
    /// What undoes it.
    pub undo: Option<UndoPlan>,
    /// The steps that it comes after, where that is not just the one before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Vec<u8>>,
    /// The arms of choices that it stands in, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<ArmPlan>,
    /// Whether it is a step of the saga that is a step of this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sub: bool,
    /// The nap before it.
    #[serde(default)]
    pub nap: Nap,
    /// The earlier step whose output it takes.
    pub reads: Option<u8>,
    /// Whether the saga only goes forward once it is done.
    pub is_pivot: bool,
    /// Whether no two calls of it ever run at once.
    #[serde(default)]
    pub is_exclusive: bool,
    /// How many events it emits each time it runs.
    pub emits: u8,
    /// How often it may be called in all, for one turn of its policy.
    pub attempts: u32,
}

/// An arm of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmPlan {
    /// The choice's name.
    pub choice: String,
    /// The arm's name.
    pub arm: String,
}

/// A compensation as its author wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoPlan {
    /// What it acts on.
    pub kind: Kind,
    /// Whether it can run when nobody knows if the step took effect.
    pub takes_unknown: bool,
    /// How many events it emits each time it runs.
    pub emits: u8,
    /// How often it may be called in all, for one turn of its policy.
    pub attempts: u32,
}

/// What a step acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// The database, in the step's transaction.
    Transactional,
    /// A service outside that honours keys.
    External,
}

/// Whether a step is done or undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Op {
    /// The step itself.
    Do,
    /// Its compensation.
    Undo,
}

/// Something that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in microseconds of the run.
    pub at: u64,
    /// In which process; 0 is the world outside.
    pub process: u16,
    /// What.
    pub what: What,
}

/// What was seen. A `call` is the number of one call of a step function (or of one start by a client), unique in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A client calls `start`.
    StartCalled {
        /// The number of this call.
        call: u64,
        /// Under which tenant and key.
        saga: u32,
        /// With which payload and definition.
        variant: u8,
    },
    /// `start` answered. A call without an answer may or may not have taken effect.
    StartAnswered {
        /// The number of that call.
        call: u64,
        /// The answer.
        answer: Answer,
    },
    /// Somebody starts a saga instead of another one that has ended. The answer is that of a start.
    RestartCalled {
        /// The number of this call.
        call: u64,
        /// Under which tenant and key.
        saga: u32,
        /// Instead of which saga.
        of: u32,
        /// The steps that it is to begin with: one, the items of a list, or those in the arms of a choice. What does not
        /// come behind them is taken over.
        from: Vec<u8>,
    },
    /// A client was told how a saga ended.
    OutcomeSeen {
        /// The saga.
        saga: u32,
        /// What it was told.
        standing: Standing,
    },
    /// A step function begins to run.
    Entered {
        /// The number of this call.
        call: u64,
        /// For which saga, by the payload it was given.
        saga: u32,
        /// For which variant, by the payload it was given.
        variant: u8,
        /// Which step.
        step: u8,
        /// Do or undo.
        op: Op,
        /// The epoch that it was told.
        fence: u64,
        /// The effect of which it was given the output: a later step of an earlier one, an undo of its own step.
        reads: Option<u64>,
        /// The transaction that it was given, by a number that no other one has.
        transaction: Option<u64>,
    },
    /// A step function returned. One that was dropped, or panicked, never does.
    Left {
        /// The number of that call.
        call: u64,
        /// What it returned.
        how: Left,
    },
    /// A call arrived at the service outside.
    Called {
        /// The number of that call.
        call: u64,
        /// The key that came with it.
        key: String,
    },
    /// A call took effect outside: it was the first with its key that was not refused.
    Took {
        /// The number of that call.
        call: u64,
    },
    /// An undo arrived outside for a step that never took effect there: from now on it cannot.
    Barred {
        /// The number of that call.
        call: u64,
    },
    /// A call of an exclusive step goes on.
    Hauled {
        /// The number of that call.
        call: u64,
    },
    /// A call outside is told how far the calls before it were.
    Told {
        /// The number of that call.
        call: u64,
        /// Its key.
        key: String,
        /// Which attempt it is told to be.
        attempt: u32,
        /// The number of the report that it is told.
        report: Option<u64>,
    },
    /// A call outside reports how far it is.
    Reported {
        /// The number of that call.
        call: u64,
        /// The number of the report, unique in the run.
        report: u64,
    },
    /// The service outside was asked by a step's key, and said that this call took effect.
    Found {
        /// The number of the call that took effect.
        call: u64,
        /// For which saga it was asked, by the payload that was given.
        saga: u32,
    },
    /// What a transactional step function wrote was committed.
    Wrote {
        /// The number of that call.
        call: u64,
    },
    /// A message was accepted by the transport.
    Delivered {
        /// The message's id.
        message: String,
        /// Whose the message says it is.
        tenant: String,
        /// Its ordering key.
        key: String,
        /// The call that emitted it, by its payload.
        call: u64,
        /// Which of the events of that call it is, from 0.
        nth: u8,
    },
    /// A message between services was accepted by the broker.
    Sent {
        /// The message's id.
        message: String,
        /// What it is.
        kind: Sent,
        /// The saga that it names; [`u32::MAX`] where it names none of the run.
        saga: u32,
        /// The step that it names.
        step: u8,
        /// The message that a reply answers.
        asked: Option<String>,
    },
    /// A process began that hosts only some of the steps of its service: what it does not know becomes dead letters.
    Ignorant,
    /// A saga was seen stuck.
    StuckSeen {
        /// The saga.
        saga: u32,
    },
    /// An operator acts. It counts, unless it was refused: an answer that never came may have been a yes.
    Acted {
        /// On which saga.
        saga: u32,
        /// On which row of it: 0 is its own, the highest number that of its sub-saga, and any other is one more than the
        /// place of a step that another service hosts.
        row: u8,
        /// What is done.
        act: Act,
        /// The number of this act.
        call: u64,
        /// The revision of the saga that the operator had seen.
        revision: u64,
    },
    /// An operator was told whether an act was done.
    ActAnswered {
        /// The number of that act.
        call: u64,
        /// Whether it was done; if not, it was refused.
        is_done: bool,
    },
    /// A client cancels a saga. Without an answer it may or may not have taken effect.
    CancelCalled {
        /// The number of this call.
        call: u64,
        /// Which saga.
        saga: u32,
    },
    /// `cancel` answered.
    CancelAnswered {
        /// The number of that call.
        call: u64,
        /// Whether the saga has turned round, by this call or before. If not, it had ended or only goes forward.
        is_turned: bool,
    },
    /// A person pauses a saga. Without an answer it may or may not have taken effect.
    PauseCalled {
        /// The number of this call.
        call: u64,
        /// Which saga.
        saga: u32,
    },
    /// `pause` answered.
    PauseAnswered {
        /// The number of that call.
        call: u64,
        /// Whether the saga is paused, by this call or before. If not, it had ended.
        is_paused: bool,
    },
    /// A person lets a saga go on. Without an answer it may or may not have taken effect.
    ResumeCalled {
        /// The number of this call.
        call: u64,
        /// Which saga.
        saga: u32,
    },
    /// `resume` answered.
    ResumeAnswered {
        /// The number of that call.
        call: u64,
    },
    /// A client sends a signal to a saga. Without an answer it may or may not have been received.
    SignalCalled {
        /// The number of this call.
        call: u64,
        /// Which saga.
        saga: u32,
        /// Which signal, by its id and its content.
        id: u64,
    },
    /// `signal` answered.
    SignalAnswered {
        /// The number of that call.
        call: u64,
        /// The answer.
        receipt: Receipt,
    },
    /// A process was crashed.
    Crashed,
    /// A process was stopped.
    Paused,
    /// A stopped process went on.
    Resumed,
    /// A process said that it has shut down.
    ShutDown,
    /// From here on nothing is disturbed any more.
    FaultsEnded,
}

/// What a message between services is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Sent {
    /// Do this step.
    Command,
    /// Undo it.
    Undo,
    /// What became of one of these.
    Reply,
}

/// What `signal` answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receipt {
    /// It decides.
    Counts,
    /// The same one had been received.
    Known,
    /// It does not decide, or there is no saga that waits for it.
    Refused,
}

/// What `start` answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// There is such a saga now. `is_new` where the answer says whether this call made it.
    Started {
        /// Whether this call made it, where that is said.
        is_new: Option<bool>,
    },
    /// The key belongs to something else.
    Refused,
    /// It failed, and may be repeated.
    Failed,
}

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

/// What a step function returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Left {
    /// A success.
    Done,
    /// A business failure.
    Rejected,
    /// An error that says that the outside saw nothing.
    NotSent,
    /// Any other error: it may have happened.
    Failed,
}

/// What an operator did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Act {
    /// Try again.
    Retry,
    /// Go past the step.
    Skip {
        /// Which.
        step: u8,
        /// Do or undo.
        op: Op,
    },
    /// End it as completed or as compensated.
    Force(Standing),
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
    /// Whether the success came in after the step had been decided without it. Its events are then not sent.
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
    /// Sagas of which nobody knows, neither plan nor client.
    pub strangers: u64,
    /// Tasks of the engine that panicked.
    pub panics: Vec<String>,
    /// Faults that may have made the engine run something once more without counting it.
    pub repeats: u32,
}
