//! The state of a saga.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::failure::{Failure, Stuck};
use super::items::Items;
use super::remote::Caller;
use super::step_state::{StepPhase, StepState};
use super::timer::Deadline;
use crate::store::Status;

/// The state of a saga. It is stored with the saga, so its field names are short and only ever added to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SagaState {
    /// The direction.
    #[serde(rename = "p")]
    pub phase: Phase,
    /// The steps in the order of the definition, followed by the items of the steps that run once per item of a list.
    #[serde(rename = "s")]
    pub steps: Vec<StepState>,
    /// Which of the steps are items, in the order in which the lists became known.
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
    /// Why the saga needs an operator. While it is set, the saga is stuck, and `phase` says in which direction it goes on.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
    /// What else needs an operator, where several branches of a group got stuck. Each is decided after the one before it.
    #[serde(rename = "K", default, skip_serializing_if = "Vec::is_empty")]
    pub also_stuck: Vec<Stuck>,
    /// Who asked for it, where it is a step that is hosted for another service.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Box<Caller>>,
    /// The trace context that its start was given.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Its deadline, until the saga passes its pivot, compensates or ends.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// The time until its deadline that the start call gave; nothing where the definition gives it. It stays when the
    /// deadline is gone, for a saga that is started instead of this one.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
    /// How long after its start it was to begin, where that was not at once.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// The reason that an operator gave for ending the saga.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<String>,
    /// Set while an operator has paused it.
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Box<Pause>>,
    /// The last progress reports of steps that are stuck: they have no work row that could keep them.
    #[serde(rename = "r", default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<KeptReport>,
    /// What it returned, where it completed and its definition says what a saga returns.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<KeptResult>>,
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

/// Why a saga is paused, and which of its work rows wait for the end of the pause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Who paused it, where that is known.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(rename = "r")]
    pub reason: String,
    /// The work rows that fell due meanwhile. They keep their attempts, and wait until the saga is resumed.
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    pub parked: Vec<i64>,
}

/// The last progress report of a step, or of an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptReport {
    /// The index of the step.
    #[serde(rename = "s")]
    pub step: usize,
    /// Which undo of it; 0 is the step itself.
    #[serde(rename = "u", default, skip_serializing_if = "is_zero")]
    pub round: u32,
    /// The report as JSON.
    #[serde(rename = "r")]
    pub report: String,
}

/// What a saga returned when it completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeptResult {
    /// The result as JSON.
    #[serde(rename = "v")]
    Value(String),
    /// Why it could not be made.
    #[serde(rename = "x")]
    NotMade(String),
}

impl SagaState {
    /// The trace context: that of the saga which asked for this step, or that of the start.
    pub fn traceparent(&self) -> Option<&str> {
        let of_caller = self.caller.as_ref().and_then(|caller| caller.traceparent.as_deref());
        of_caller.or(self.traceparent.as_deref())
    }

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
            traceparent: None,
            deadline: None,
            within: None,
            delay: None,
            forced: None,
            paused: None,
            reports: Vec::new(),
            result: None,
        }
    }

    /// The status that the store keeps beside the state.
    pub fn status(&self) -> Status {
        match self.phase {
            // A stuck saga that is paused shows the pause: what is stuck is decided after it.
            Phase::Running | Phase::Compensating if self.paused.is_some() => Status::Paused,
            _ if self.stuck.is_some() => Status::Stuck,
            Phase::Running => Status::Running,
            Phase::Compensating => Status::Compensating,
            Phase::Completed => Status::Completed,
            Phase::Compensated => Status::Compensated,
        }
    }

    /// Whether an operator is to decide about that step, or about its undo.
    pub fn is_stuck_at(&self, step: usize) -> bool {
        self.stuck_at(step).is_some()
    }

    /// Why an operator is to decide about that step, or about its undo.
    pub fn stuck_at(&self, step: usize) -> Option<&Stuck> {
        self.stuck.iter().chain(&self.also_stuck).find(|stuck| stuck.step == step)
    }

    /// How many steps are under way: their commands, or those of their undos, are given out or stuck.
    pub fn under_way(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.phase, StepPhase::Started | StepPhase::Undoing)).count()
    }

    /// Forgets the parked rows that are gone: their steps have ended otherwise, for example by a reply.
    pub fn keep_parked(&mut self, is_there: impl Fn(i64) -> bool) {
        if let Some(pause) = &mut self.paused {
            pause.parked.retain(|row| is_there(*row));
        }
    }

    /// Whether an operator has paused it, and it has not ended since.
    pub fn is_paused(&self) -> bool {
        self.paused.is_some() && !self.has_ended()
    }

    pub(in crate::machine) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Completed | Phase::Compensated)
    }

    pub(in crate::machine) fn next_position(&mut self) -> u32 {
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
