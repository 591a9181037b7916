//! Why a saga compensates, and why it is stuck.

use serde::{Deserialize, Serialize};

use crate::step::Rejection;

/// Why a saga compensates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The index of the step that failed; where none did, of the step that the saga had reached.
    #[serde(rename = "s")]
    pub step: usize,
    /// In which way.
    #[serde(rename = "k")]
    pub kind: FailureKind,
    /// Why, with the user's own error where there is one.
    #[serde(rename = "r")]
    pub reason: Rejection,
}

impl Failure {
    /// A failure whose reason is a text of the engine.
    pub(in crate::machine) fn new(step: usize, kind: FailureKind, message: impl std::fmt::Display) -> Self {
        Self { step, kind, reason: Rejection::new(message) }
    }

    /// A business failure of the step.
    pub(in crate::machine) const fn rejected(step: usize, reason: Rejection) -> Self {
        Self { step, kind: FailureKind::Rejected, reason }
    }
}

/// In which way a step failed, or why a saga compensates although none did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// A definite business failure.
    Rejected,
    /// Out of attempts, and certainly without effect.
    Failed,
    /// The step may have taken effect.
    Unknown,
    /// No step failed: the saga was cancelled.
    Cancelled,
    /// No step failed: the saga's deadline passed.
    Deadline,
}

/// Why a saga needs an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// The index of the step.
    #[serde(rename = "s")]
    pub step: usize,
    /// Whether the step's undo is stuck, and not the step itself.
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    pub undo: bool,
    /// In words.
    #[serde(rename = "m")]
    pub reason: String,
    /// The input that a mapping gave to the step, so that a retry does not compute it again. Also the saga's own input,
    /// where the step got that before the saga moved to a version with a mapping.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}
