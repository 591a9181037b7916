//! What follows from an event.

use super::state::timer::Timer;
use crate::store::RecordedOutcome;

/// What follows from an event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// Commands to give out.
    pub commands: Vec<Command>,
    /// The step record to insert.
    pub record: Option<Record>,
    /// Further ones, where one action decides about several steps.
    pub further: Vec<Record>,
    /// The step whose list is to be recorded, and the position of that record.
    pub listed: Option<(usize, u32)>,
    /// The step whose signal is to be recorded, and the position of that record.
    pub signalled: Option<(usize, u32)>,
    /// Rows that the saga does not wait for any more.
    pub withdrawn: Vec<Timer>,
    /// The step record to revise.
    pub revision: Option<Revision>,
    /// The steps that got stuck with this event, or whose undos did.
    pub blocked: Vec<usize>,
    /// The steps whose semantic locks, or requests for them, end with this event. The end of the saga ends all of them.
    pub released: Vec<usize>,
    /// Whether the saga became stuck with this event, or shows another reason for it.
    pub became_stuck: bool,
}

impl Decision {
    /// What follows from another event of the same commit belongs to this one as well. The records are written for each event.
    pub fn follow_with(&mut self, follows: Self) {
        self.commands.extend(follows.commands);
        self.withdrawn.extend(follows.withdrawn);
        self.blocked.extend(follows.blocked);
        self.released.extend(follows.released);
    }
}

/// A command of a saga. A step is named by its index in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Do a step.
    Do {
        /// Its index.
        step: usize,
    },
    /// Undo a step.
    Undo {
        /// Its index.
        step: usize,
        /// Which undo of it, from 1.
        round: u32,
        /// Whether it is known to have taken effect. If not, the compensation waits for the settle time and gets `None`.
        known: bool,
    },
}

impl Command {
    /// The index of the step.
    pub(crate) const fn step(self) -> usize {
        match self {
            Self::Do { step } | Self::Undo { step, .. } => step,
        }
    }

    pub(crate) const fn is_undo(self) -> bool {
        matches!(self, Self::Undo { .. })
    }
}

/// A step record to insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The index of the step.
    pub step: usize,
    /// Which undo of it, from 1; nothing for the step itself.
    pub undo_round: Option<u32>,
    /// What became of it.
    pub outcome: RecordedOutcome,
    /// Its place in the order of the saga's records.
    pub position: u32,
}

/// A step record to revise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revision {
    /// The index of the step.
    pub step: usize,
    /// The outcome that is recorded now. With another one the revision is a conflict.
    pub expected: RecordedOutcome,
    /// The outcome that the record gets.
    pub outcome: RecordedOutcome,
}

impl Record {
    /// That the step itself had this outcome.
    pub(super) const fn of_step(step: usize, outcome: RecordedOutcome, position: u32) -> Self {
        Self { step, undo_round: None, outcome, position }
    }
}

impl Decision {
    pub(super) fn insert(&mut self, record: Record) {
        match self.record {
            None => self.record = Some(record),
            Some(_) => self.further.push(record),
        }
    }
}
