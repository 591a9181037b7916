//! The state of one step.

use serde::{Deserialize, Serialize};

use super::remote::Sent;
use super::timer::Timer;

/// The state of a step, or of one item of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
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
    /// Whether it may have taken effect: its outcome was decided, or it got stuck, while that was unknown, and no success
    /// was reported since.
    #[serde(rename = "q", default, skip_serializing_if = "std::ops::Not::not")]
    pub in_doubt: bool,
    /// Whether a success was reported after its undo had been given out without knowing of it.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// Whether its present undo may have been called without knowing of a success.
    #[serde(rename = "b", default, skip_serializing_if = "std::ops::Not::not")]
    pub undo_uninformed: bool,
    /// The fencing token that its earlier commands reached. A command that is given out again counts on from there, though
    /// its row begins with epoch 1.
    #[serde(rename = "e", default, skip_serializing_if = "is_zero_long")]
    pub fence: u64,
    /// Its command to the service that hosts it.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Sent>,
    /// The undo that was sent there last.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub undo_sent: Option<Sent>,
    /// Of a step that waits for a signal: the id of the signal that arrived.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<u128>,
    /// Of a step that only waits: the row that falls due when it has waited long enough.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<Timer>,
    /// Of a step that took a semantic lock: whether an operator took the lock from the saga.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    pub lock_lost: bool,
}

/// What became of a step so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StepPhase {
    /// It has not begun.
    #[serde(rename = "-")]
    Ready,
    /// Its command was given out.
    #[serde(rename = "s")]
    Started,
    /// It runs once per item of a list, and its items have begun.
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
    /// An operator skipped it.
    #[serde(rename = "k")]
    Skipped,
    /// An operator skipped its undo: its effect stays.
    #[serde(rename = "K")]
    UndoSkipped,
    /// It is in an arm that was not taken: it never runs.
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
}

impl StepState {
    /// A step that has not begun.
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
            lock_lost: false,
        }
    }

    /// Whether the steps after it may begin.
    pub const fn is_passed(&self) -> bool {
        matches!(self.phase, StepPhase::Done | StepPhase::Skipped | StepPhase::NotTaken)
    }
}

impl Default for StepState {
    fn default() -> Self {
        Self::new()
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
