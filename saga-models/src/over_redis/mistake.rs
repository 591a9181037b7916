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
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::RedisConfirmedFirst, Self::MarkExpires, Self::ToldInAnyEpoch, Self::ToldInAnyOrder, Self::NoFence];
}
