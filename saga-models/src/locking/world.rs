use super::row::Entities;
use super::table::Table;
use super::transaction::{Answer, Transaction};

/// Everything that is, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// What is committed.
    pub table: Table,
    /// The last number that the sequence of the database gave.
    pub last: u8,
    /// The sagas.
    pub sagas: [Saga; 2],
    /// The highest token that was granted of each entity.
    pub highest: [u8; 2],
    /// What may still go wrong.
    pub left: Left,
    /// What must not happen.
    pub broken: Broken,
    /// What has happened just now.
    pub reached: Reached,
}

/// A saga, and the process that runs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Saga {
    /// What it locks, one lock after the other.
    pub locks: Vec<Entities>,
    /// Whether it is a step with a lock of its own, which takes it in its transaction if it can.
    pub is_step: bool,
    /// Whether it has to ask for its lock, since it could not take it.
    pub must_ask: bool,
    /// How far it is.
    pub stage: Stage,
    /// How many of its locks it has been told of.
    pub granted: usize,
    /// The token of each entity that it has been told of.
    pub tokens: [Option<u8>; 2],
    /// The entities that it has written, and may still undo.
    pub wrote: Entities,
    /// Its transaction.
    pub transaction: Option<Transaction>,
    /// An answer that was committed, and that it has not got.
    pub unheard: Option<Answer>,
}

/// How far a saga is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It asks for its next lock, works, and ends.
    Running,
    /// It waits for its next lock.
    Waiting,
    /// A step failed, or it did not get a lock: its work is undone, and then it ends.
    Compensating,
    /// It has ended.
    Ended,
}

/// How often something may still go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Left {
    /// A process stops in the middle of a transaction.
    pub crashes: u8,
    /// A transaction commits, and its process does not hear of it.
    pub lost_answers: u8,
}

/// What must not happen, and cannot be seen in a single state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all combinations may occur")]
pub struct Broken {
    /// A token was granted that is not higher than those before.
    pub token_again: bool,
    /// A request was granted while an earlier one waited for the same entity.
    pub overtaken: bool,
    /// A request that was repeated got another answer.
    pub another_answer: bool,
    /// A request that gave up was granted.
    pub granted_late: bool,
    /// A saga wrote what another one could still undo.
    pub wrote_between: bool,
}

/// What has happened just now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all combinations may occur")]
pub struct Reached {
    /// A lock was handed over in the commit that ended the one before.
    pub handed_over: bool,
    /// A ring of waits was ended.
    pub ring_ended: bool,
    /// A saga waited as long as it may.
    pub timed_out: bool,
    /// A request was repeated, and its saga has the lock.
    pub heard_again: bool,
    /// A lock was taken in a transaction and ended with it.
    pub taken_within: bool,
    /// A lock was taken in a transaction, and its saga keeps it.
    pub kept: bool,
    /// A transaction found an entity taken, and its saga asks for it.
    pub refused: bool,
    /// A saga got an entity again that it has already.
    pub had_already: bool,
}

impl World {
    pub(super) fn new(sagas: [Saga; 2], left: Left) -> Self {
        Self {
            table: Table::default(),
            last: 0,
            sagas,
            highest: [0; 2],
            left,
            broken: Broken::default(),
            reached: Reached::default(),
        }
    }
}

impl Saga {
    pub(super) fn new(locks: Vec<Entities>, is_step: bool) -> Self {
        Self {
            locks,
            is_step,
            must_ask: false,
            stage: Stage::Running,
            granted: 0,
            tokens: [None; 2],
            wrote: [false; 2],
            transaction: None,
            unheard: None,
        }
    }

    /// Whether it may take its lock in a transaction that does not wait for it.
    pub(super) fn may_try(&self) -> bool {
        self.granted == 0 && !self.must_ask
    }

    /// Whether it has all of its locks.
    pub(super) fn has_all(&self) -> bool {
        self.granted == self.locks.len()
    }

    /// It ends, and has nothing any more.
    pub(super) fn end(&mut self) {
        (self.stage, self.tokens, self.wrote, self.transaction) = (Stage::Ended, [None; 2], [false; 2], None);
    }
}
