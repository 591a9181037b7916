use super::timer::Timer;
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
    /// Rows that nobody waits for any more.
    pub withdrawn: Vec<Timer>,
    /// The step record to revise.
    pub revision: Option<Revision>,
    /// The steps that cannot go on without a person from now on, or whose undos cannot.
    pub blocked: Vec<usize>,
    /// The saga turned out to need a person just now.
    pub became_stuck: bool,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Do a step.
    Do {
        /// The step.
        step: usize,
    },
    /// Undo a step.
    Undo {
        /// The step.
        step: usize,
        /// Which undo of it, from 1.
        round: u32,
        /// Whether it is known to have taken effect. If not, the compensation waits for the settle time and gets `None`.
        known: bool,
    },
}

/// A step record to insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The step.
    pub step: usize,
    /// Which undo of it; nothing for the step itself.
    pub undo_round: Option<u32>,
    /// What became of it.
    pub outcome: RecordedOutcome,
    /// Its place in the order of the saga's records.
    pub position: u32,
}

/// A step record to revise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revision {
    /// The step.
    pub step: usize,
    /// What the record says now.
    pub expected: RecordedOutcome,
    /// What it will say.
    pub outcome: RecordedOutcome,
}

impl Decision {
    pub(super) fn insert(&mut self, record: Record) {
        match self.record {
            None => self.record = Some(record),
            Some(_) => self.further.push(record),
        }
    }
}
