/// A message that was sent. It stays deliverable, so that it may come again, until it is too old for its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Held {
    /// What it says.
    pub body: Body,
    /// When it was committed, by the clock of its sender.
    pub at: i8,
    /// Whether it has come once.
    pub has_come: bool,
}

/// What a message says. Sagas with one key are told apart by their number, which the host does not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Body {
    /// Do the step for this saga.
    Command(usize),
    /// Undo it.
    Undo(usize),
    /// The saga is closed.
    Closed(usize),
    /// The host asks whether the saga of its record is closed.
    Question {
        /// The saga of the record.
        of: usize,
        /// How long ago the step ended, by the host's clock.
        ended_ago: i8,
    },
    /// The answer that it is. It has the time of its question, by the host's clock.
    Answer(usize),
    /// The step is done, as the host's record of that saga says.
    Done {
        /// The saga that asked.
        asked: usize,
        /// The saga for which the host did it.
        of: usize,
    },
    /// The step is undone.
    Undone {
        /// The saga that asked.
        asked: usize,
        /// The saga for which the host undid it.
        of: usize,
    },
}

impl Body {
    /// Whether the host gets it.
    pub fn is_for_host(self) -> bool {
        matches!(self, Self::Command(_) | Self::Undo(_) | Self::Closed(_) | Self::Answer(_))
    }
}
