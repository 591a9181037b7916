/// Which of the two entities.
pub type Entities = [bool; 2];

/// A semantic lock, or a request for one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Row {
    /// Its place in the queues.
    pub number: u8,
    /// The saga.
    pub owner: usize,
    /// The name of the lock.
    pub name: usize,
    /// What it locks.
    pub entities: Entities,
    /// Whether the saga has it.
    pub state: RowState,
    /// The tokens of a granted one.
    pub tokens: [u8; 2],
}

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowState {
    /// The saga waits.
    Waiting,
    /// The saga has the lock.
    Granted,
    /// The saga has waited as long as it may.
    TimedOut,
    /// The saga gave up, since another one waits for it.
    Deadlock,
}

/// What is written by a commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Write {
    /// A new row.
    Insert(Row),
    /// A row, if it is there.
    Update(Row),
    /// The row of this number is deleted.
    Delete(u8),
}
