//! Bugs that a test plants, to show that a rule is needed: without it the same steps end badly.

#[cfg(feature = "testing")]
use crate::options::PostgresOptions;

/// A rule that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "testing"),
    expect(dead_code, unreachable_pub, reason = "some are only looked for in statements, and by tests")
)]
pub enum Planted {
    /// What a handler wrote that rejected stays.
    KeepsRejected,
    /// Two changes of one saga are written by one statement.
    TakesTwins,
    /// Whether a row is still there is read, and not settled by a write.
    GuessesAbsence,
    /// A lane is leased whoever has it.
    SharesLanes,
    /// A handler may write behind a `ROLLBACK`.
    LeavesOutsideOpen,
    /// A position is read off the outbox, and no counter is held.
    CountsUnlocked,
    /// Whether the commit ended the transaction is not looked at, nor whether a connection comes back inside one.
    TrustsNesting,
    /// A commit that others share waits for locks as long as it takes.
    WaitsForLocks,
    /// The savepoint in front of a handler has a name that everybody knows.
    NamesItsSavepoint,
}

#[cfg(feature = "testing")]
impl PostgresOptions {
    /// Leaves a rule out.
    #[must_use]
    pub fn planted(mut self, bug: Planted) -> Self {
        self.planted = Some(bug);
        self
    }
}

#[cfg(feature = "testing")]
impl Planted {
    /// A statement of the store, with the bug if it is there that it lies.
    pub(crate) fn spoil(self, statement: String) -> String {
        match self {
            Self::GuessesAbsence if statement.contains("leased_until = NULL, epoch = w.epoch + 1") => {
                "SELECT u.id, u.epoch FROM unnest($1::bigint[], $2::bigint[]) u (id, epoch) \
                 JOIN {schema}.work w ON w.id = u.id AND w.epoch = u.epoch"
                    .to_owned()
            }
            Self::SharesLanes => statement.replace("(l.owner IS NULL OR", "(true OR"),
            Self::CountsUnlocked => match statement.split_once("INSERT INTO {schema}.published") {
                Some((before, counter)) => {
                    let behind = counter.split_once("RETURNING p.position").map_or("", |(_, behind)| behind);
                    let read = "SELECT coalesce(max(o.position), 0) + 1 AS position FROM {schema}.outbox o \
                         WHERE o.tenant = $1 AND o.aggregatetype = $2 AND o.aggregateid = $3";
                    format!("{before}{read}{behind}")
                }
                None => statement,
            },
            _ => statement,
        }
    }
}
