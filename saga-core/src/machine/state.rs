use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::deadline::Deadline;
use super::items::Items;
use super::pause::Pause;
use super::remote::{Caller, Sent};
use super::report::KeptReport;
use super::timer::Timer;
use crate::step::Rejection;
use crate::store::Status;

/// Where a saga stands. It is stored with the saga, so its field names are short and only ever added to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SagaState {
    /// The direction.
    #[serde(rename = "p")]
    pub phase: Phase,
    /// The steps in the order of the definition, and behind them the items of those that are done for each of a list.
    #[serde(rename = "s")]
    pub steps: Vec<StepState>,
    /// Which of the steps are items, in the order in which the lists were there.
    #[serde(rename = "i", default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Items>,
    /// The last position that was given.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub position: u32,
    /// How many messages the saga has caused.
    #[serde(rename = "m", default, skip_serializing_if = "is_zero_long")]
    pub messages: u64,
    /// Why the saga compensates.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why the saga needs a person. While it is set, the saga is stuck, and `phase` says what it goes back to.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
    /// What else needs a person, where branches of a group got stuck beside each other. Its turn comes when what is
    /// stuck before it is decided.
    #[serde(rename = "K", default, skip_serializing_if = "Vec::is_empty")]
    pub also_stuck: Vec<Stuck>,
    /// Who asked for it, where it is a step that is hosted for another service.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Box<Caller>>,
    /// Its deadline, as long as it says anything.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// The time until its deadline that whoever started it gave it; nothing where its definition says it. It stays when the
    /// deadline is gone, for a saga that is started instead of this one.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
    /// The reason that an operator gave for ending the saga.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<String>,
    /// Set while a person has paused it.
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Box<Pause>>,
    /// What steps reported whose commands are gone while a person decides.
    #[serde(rename = "r", default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<KeptReport>,
}

/// The direction of a saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// It goes forward.
    #[serde(rename = "r")]
    Running,
    /// It undoes what took effect.
    #[serde(rename = "c")]
    Compensating,
    /// It ended with every step done.
    #[serde(rename = "C")]
    Completed,
    /// It ended with everything undone.
    #[serde(rename = "U")]
    Compensated,
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StepState {
    /// What became of it so far.
    #[serde(rename = "p")]
    pub phase: StepPhase,
    /// Its place in the order of what took effect or may have; 0 while it has none.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub position: u32,
    /// How many undos of it were begun.
    #[serde(rename = "u", default, skip_serializing_if = "is_zero")]
    pub undo_round: u32,
    /// Whether it may have happened: it was decided, or a person was called, without knowing, and no success was
    /// reported since.
    #[serde(rename = "q", default, skip_serializing_if = "is_false")]
    pub in_doubt: bool,
    /// Whether a success was reported after its undo had been given out without knowing of it.
    #[serde(rename = "l", default, skip_serializing_if = "is_false")]
    pub late: bool,
    /// Whether its present undo may have been called without knowing of a success.
    #[serde(rename = "b", default, skip_serializing_if = "is_false")]
    pub undo_uninformed: bool,
    /// The fence that its earlier commands reached. A command that is given out again counts on from there, though its
    /// row begins with epoch 1.
    #[serde(rename = "e", default, skip_serializing_if = "is_zero_long")]
    pub fence: u64,
    /// Its command to the service that hosts it.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Sent>,
    /// The undo that was sent there last.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub undo_sent: Option<Sent>,
    /// Of one that waits for a signal: the id of the one that arrived.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<u128>,
    /// Of one that only waits: the row that falls due when it has waited long enough.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<Timer>,
}

/// What became of a step so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StepPhase {
    /// Its turn has not come.
    #[serde(rename = "-")]
    Ready,
    /// Its command was given out.
    #[serde(rename = "s")]
    Started,
    /// It is done for each item of a list, and they are on their way.
    #[serde(rename = "i")]
    FannedOut,
    /// It took effect.
    #[serde(rename = "d")]
    Done,
    /// A definite business failure: no effect.
    #[serde(rename = "r")]
    Rejected,
    /// A transactional step out of attempts: no effect.
    #[serde(rename = "f")]
    Failed,
    /// It may have taken effect.
    #[serde(rename = "?")]
    Unknown,
    /// Its undo was given out.
    #[serde(rename = "u")]
    Undoing,
    /// It was undone.
    #[serde(rename = "U")]
    Undone,
    /// It certainly never ran.
    #[serde(rename = "c")]
    Cancelled,
    /// An operator went past it.
    #[serde(rename = "k")]
    Skipped,
    /// An operator left its effect as it is.
    #[serde(rename = "K")]
    UndoSkipped,
    /// It stands in an arm that was not taken: it never runs.
    #[serde(rename = "p")]
    NotTaken,
}

impl StepPhase {
    /// The phase in the word of the glossary.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Started => "started",
            Self::FannedOut => "unfolded",
            Self::Done => "done",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Undoing => "undoing",
            Self::Undone => "undone",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
            Self::UndoSkipped => "undo skipped",
            Self::NotTaken => "passed by",
        }
    }

    /// Whether what stands behind the step may begin.
    pub const fn is_passed(self) -> bool {
        matches!(self, Self::Done | Self::Skipped | Self::NotTaken)
    }
}

/// Why a saga compensates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The index of the step that failed; where none did, of the one that the saga had come to.
    #[serde(rename = "s")]
    pub step: usize,
    /// In which way.
    #[serde(rename = "k")]
    pub kind: FailureKind,
    /// Why, with the user's own error where there is one.
    #[serde(rename = "r")]
    pub reason: Rejection,
}

/// In which way a step failed, or why a saga turned round although none did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// A definite business failure.
    Rejected,
    /// Out of attempts, and certainly without effect.
    Failed,
    /// It may have taken effect.
    Unknown,
    /// No step failed: the saga was called off.
    Cancelled,
    /// No step failed: the saga's deadline passed.
    Deadline,
}

/// Why a saga needs a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// The index of the step.
    #[serde(rename = "s")]
    pub step: usize,
    /// Whether it is the step's undo that cannot go on.
    #[serde(rename = "u", default, skip_serializing_if = "is_false")]
    pub undo: bool,
    /// In words.
    #[serde(rename = "m")]
    pub reason: String,
    /// The input that a mapping gave to the step, so that it is not computed again when the step is.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}

impl StepState {
    /// A step whose turn has not come.
    pub const fn new() -> Self {
        Self {
            phase: StepPhase::Ready,
            position: 0,
            undo_round: 0,
            in_doubt: false,
            late: false,
            undo_uninformed: false,
            fence: 0,
            sent: None,
            undo_sent: None,
            timer: None,
            signal: None,
        }
    }
}

impl Default for StepState {
    fn default() -> Self {
        Self::new()
    }
}

impl SagaState {
    /// A saga of so many steps that has not begun.
    pub fn new(steps: usize) -> Self {
        Self {
            phase: Phase::Running,
            steps: vec![StepState::new(); steps],
            items: Vec::new(),
            position: 0,
            messages: 0,
            failure: None,
            stuck: None,
            also_stuck: Vec::new(),
            caller: None,
            deadline: None,
            within: None,
            forced: None,
            paused: None,
            reports: Vec::new(),
        }
    }

    /// The status that the store keeps beside the state.
    pub fn status(&self) -> Status {
        match self.phase {
            // What is stuck in it has its turn when it goes on.
            Phase::Running | Phase::Compensating if self.paused.is_some() => Status::Paused,
            _ if self.stuck.is_some() => Status::Stuck,
            Phase::Running => Status::Running,
            Phase::Compensating => Status::Compensating,
            Phase::Completed => Status::Completed,
            Phase::Compensated => Status::Compensated,
        }
    }

    /// The state as bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Field names and strings are valid JSON by construction, and a vector takes every write.
        if self.items.is_empty() {
            serde_json::to_vec(self).unwrap_or_default()
        } else {
            serde_json::to_vec(&self.packed()).unwrap_or_default()
        }
    }

    /// The state that a store kept.
    ///
    /// # Errors
    /// When the bytes are not a state, or one of another number of steps.
    pub fn decode(bytes: &[u8], steps: usize) -> Result<Self, String> {
        let mut state: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("its state is not readable: {error}"))?;
        if state.steps.len() != steps {
            return Err(format!("its state has {} steps, but its definition has {steps}", state.steps.len()));
        }
        state.unpack().map_err(|problem| format!("its state is not readable: {problem}"))?;
        Ok(state)
    }

    /// Whether a person is to decide about that step, or about its undo.
    pub fn is_stuck_at(&self, step: usize) -> bool {
        self.stuck_at(step).is_some()
    }

    /// Why a person is to decide about that step, or about its undo.
    pub fn stuck_at(&self, step: usize) -> Option<&Stuck> {
        self.stuck.iter().chain(&self.also_stuck).find(|stuck| stuck.step == step)
    }

    /// How many steps are under way: their commands, or those of their undos, are given out, or need a person.
    pub fn under_way(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.phase, StepPhase::Started | StepPhase::Undoing)).count()
    }

    pub(super) fn next_position(&mut self) -> u32 {
        self.position += 1;
        self.position
    }
}

// Serde hands the field by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero_long(value: &u64) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !*value
}
