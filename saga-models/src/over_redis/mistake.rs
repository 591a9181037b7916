/// A mistake about holds in Redis that is made on purpose. The model finds each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mistake {
    /// A confirmation is answered when Redis has marked the hold.
    RedisConfirmedFirst,
    /// A hold that is being confirmed expires.
    MarkExpires,
    /// What was read from SQL before a flush is told to Redis behind it.
    ToldInAnyEpoch,
    /// What was read from SQL earlier replaces what was read later.
    ToldInAnyOrder,
    /// A confirmation commits whatever the epoch is.
    NoFence,
    /// The keys of SQL count as loaded when they are read, and Redis does not have them yet.
    LoadedBeforeItEnds,
    /// That all keys are loaded is still believed behind a flush.
    LoadedOutlivesFlush,
    /// Keys that were read before a flush are loaded behind it.
    LoadedInAnyEpoch,
    /// A release is written in SQL, and Redis does not know its key.
    ReleaseIsNotNoted,
    /// A release commits whatever the epoch is.
    ReleaseIsNotFenced,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::RedisConfirmedFirst,
        Self::MarkExpires,
        Self::ToldInAnyEpoch,
        Self::ToldInAnyOrder,
        Self::NoFence,
        Self::LoadedBeforeItEnds,
        Self::LoadedOutlivesFlush,
        Self::LoadedInAnyEpoch,
        Self::ReleaseIsNotNoted,
        Self::ReleaseIsNotFenced,
    ];
}
