/// A mistake about semantic locks that is made on purpose. The model finds each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mistake {
    /// A saga that ends lets go whatever lock is on its entities, and may do so again.
    EndsLocksOfOthers,
    /// The token is counted from the rows that are there.
    TokenOfTheRows,
    /// The token is taken before the entities are locked.
    TokenBeforeTheLock,
    /// The rows are read before the entities are locked.
    ReadsBeforeItLocks,
    /// The lock is handed over by a commit of its own, behind the one that ends the saga before.
    HandsOverLater,
    /// A request is blocked by the owner of an entity, and not by an earlier request that waits for it.
    Overtakes,
    /// A request has an entity while it waits for another one, and one of the sagas locks its entities in the opposite order.
    UnsortedTaking,
    /// The lock ends before the last undo.
    EndsBeforeTheUndo,
    /// No store looks for rings of waits.
    LooksForNoRings,
    /// Two transactions may let sagas wait at once.
    NoLockOfWaits,
    /// A saga that sees no other one wait ends its lock without locking the entities.
    EndsWithoutTheEntities,
    /// A request that gave up is still in the queue.
    GivesUpAndStays,
    /// A step transaction that could lock the entities does not look at the rows.
    TriesWithoutLooking,
    /// A saga that asks again for a lock that it has gets new tokens.
    GrantsAgain,
    /// A saga that ends keeps its locks.
    KeepsItsLocks,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::EndsLocksOfOthers,
        Self::TokenOfTheRows,
        Self::TokenBeforeTheLock,
        Self::ReadsBeforeItLocks,
        Self::HandsOverLater,
        Self::Overtakes,
        Self::UnsortedTaking,
        Self::EndsBeforeTheUndo,
        Self::LooksForNoRings,
        Self::NoLockOfWaits,
        Self::EndsWithoutTheEntities,
        Self::GivesUpAndStays,
        Self::TriesWithoutLooking,
        Self::GrantsAgain,
        Self::KeepsItsLocks,
    ];
}
