use std::fmt;

use serde::{Deserialize, Serialize};

/// The guarantees, as `ARCHITECTURE.md` numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Guarantee {
    /// A transactional step's writes, its record, the saga's progress and its messages commit together or not at all.
    G1,
    /// For one step key at most one transactional effect is ever committed.
    G2,
    /// An external step is called at least once, always with the same key; its outcome is recorded once.
    G3,
    /// A message that was committed is sent at least once; one that was not is never sent.
    G4,
    /// Every saga ends; exactly what took effect or may have is undone, in reverse order.
    G5,
    /// A start that returned is durable; the same key gives the same saga.
    G6,
    /// A replica that lost its claim cannot decide.
    G7,
    /// Nothing loses a saga, spins, or blocks others.
    G8,
    /// Messages with one ordering key are first accepted in commit order.
    G9,
    /// A dropped future, a panic and a shutdown leave the others intact.
    G10,
    /// What a dead process held goes on elsewhere; no saga is forgotten.
    G11,
    /// Tenants never meet.
    G12,
    /// What may still be acted on is never purged; a purge takes a saga whole or not at all.
    G13,
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "G{}", *self as u8 + 1)
    }
}

/// One thing that breaks a guarantee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Which guarantee.
    pub guarantee: Guarantee,
    /// Which saga of the ledger, if it is about one.
    pub saga: Option<usize>,
    /// What is wrong, in words.
    pub about: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.saga {
            Some(saga) => write!(f, "{} broken, saga #{saga}: {}", self.guarantee, self.about),
            None => write!(f, "{} broken: {}", self.guarantee, self.about),
        }
    }
}
