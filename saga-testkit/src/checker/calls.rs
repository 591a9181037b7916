//! The calls that the ledger shows: of step functions, of operators, and of those who restart sagas.

use super::{Act, Answer, Left, Op, Standing};

/// The row of the saga itself.
const OWN_ROW: u8 = 0;

/// The row of the saga that is a step.
const SUB_ROW: u8 = u8::MAX;

/// What an operator did, or tried to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditRecord {
    pub(super) at: usize,
    pub(super) act: Act,
    pub(super) call: u64,
    pub(super) row: u8,
    pub(super) revision: u64,
    /// Nothing where no answer came.
    pub(super) is_done: Option<bool>,
    /// How often it was told that it was done.
    pub(super) times: u32,
}

impl AuditRecord {
    /// Whether it may have taken effect.
    pub(super) fn is_not_refused(&self) -> bool {
        self.is_done != Some(false)
    }

    /// Whether it may have gone past that step.
    pub(super) fn goes_past(&self, step: u8, op: Op) -> bool {
        self.is_not_refused() && self.act == Act::Skip { step, op }
    }

    /// Whether it may have ended the saga by force, or the saga that is a step of it.
    pub(super) fn ends_saga_or_sub_saga(&self) -> bool {
        self.is_not_refused() && matches!(self.row, OWN_ROW | SUB_ROW) && matches!(self.act, Act::Force(_))
    }

    /// Whether it may have ended a step where it is hosted.
    pub(super) fn ends_hosted(&self, step: u8) -> bool {
        self.is_not_refused() && self.row == step + 1 && matches!(self.act, Act::Force(_))
    }

    /// Whether it may have ended the saga itself by force.
    pub(super) fn ends_saga(&self) -> bool {
        self.is_not_refused() && self.row == OWN_ROW && matches!(self.act, Act::Force(_))
    }

    /// Whether it may have ended the saga that is a step in that way.
    pub(super) fn ends_sub_saga_as(&self, standing: Standing) -> bool {
        self.is_not_refused() && self.row == SUB_ROW && self.act == Act::Force(standing)
    }
}

/// What is known of one call of a step function.
#[derive(Debug, Clone)]
pub(super) struct Call<'a> {
    pub(super) number: u64,
    pub(super) saga: usize,
    pub(super) variant: u8,
    pub(super) step: u8,
    pub(super) op: Op,
    pub(super) fence: u64,
    pub(super) reads: Option<u64>,
    pub(super) transaction: Option<u64>,
    pub(super) process: u16,
    pub(super) entered: usize,
    pub(super) left: Option<(usize, Left)>,
    pub(super) key: Option<&'a str>,
    pub(super) took: Vec<usize>,
    pub(super) barred: Option<usize>,
    /// Where the service outside said, for which saga, that it took effect.
    pub(super) found: Option<(usize, usize)>,
    pub(super) wrote: Vec<usize>,
    /// Where it went on, in an exclusive step.
    pub(super) hauled: Vec<usize>,
    /// What it was told of how far the calls before it were.
    pub(super) told: Option<Told<'a>>,
    /// What it reported, in order.
    pub(super) reports: Vec<u64>,
}

impl Call<'_> {
    /// Where it took effect, outside or in the database.
    pub(super) fn effect(&self) -> Option<usize> {
        self.took.first().or(self.wrote.first()).copied()
    }

    /// Whether it ran in a transaction that did not commit.
    pub(super) fn was_rolled_back(&self) -> bool {
        self.transaction.is_some() && self.wrote.is_empty()
    }

    /// Whether it said for certain that nothing happened.
    pub(super) fn is_definitely_not_done(&self) -> bool {
        matches!(self.left, Some((_, Left::Rejected | Left::NotSent)))
    }
}

/// What a call was told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) key: &'a str,
    pub(super) attempt: u32,
    pub(super) report: Option<u64>,
}

/// A call that starts a saga instead of another one.
#[derive(Debug, Clone)]
pub(super) struct Restarted {
    pub(super) at: usize,
    pub(super) call: u64,
    pub(super) of: usize,
    pub(super) from: Vec<u8>,
    /// Where it was answered, and how; nothing where no answer came.
    pub(super) answer: Option<(usize, Answer)>,
}

impl Restarted {
    /// When it was told that the saga is there, if it was.
    pub(super) fn told(&self) -> Option<(usize, Option<bool>)> {
        match self.answer {
            Some((at, Answer::Started { is_new })) => Some((at, is_new)),
            _ => None,
        }
    }

    pub(super) fn is_refused(&self) -> bool {
        matches!(self.answer, Some((_, Answer::Refused)))
    }

    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.of, &self.from) == (other.of, &other.from)
    }
}
