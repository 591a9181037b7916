/// A mistake about retention that is made on purpose. The model finds each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mistake {
    /// A host purges a step though nothing told it that its saga is closed.
    HostPurgesUntold,
    /// The clocks of two services are taken for equal: the horizons have no margin.
    NoMargin,
    /// A message is acted on however old it is.
    ActsOnOldMessages,
    /// A host is told that a saga is closed when that ends, and keeps nothing for the messages on their way.
    ClosesAtTheEnd,
    /// A key is forgotten together with its saga, before the hosts have forgotten it.
    ReusesKeysEarly,
    /// The time that a key is kept does not count the way of the message that the saga is closed.
    ForgetsTheWay,
    /// The time that a key is kept is counted from the end of the saga, also where that was purged later than it could be.
    CountsKeysFromTheEnd,
    /// A host that asks is told that a saga is closed which is kept in full.
    ClosesWhatIsKept,
    /// A host acts on the answer to a question however long ago it asked.
    ActsOnOldAnswers,
}

impl Mistake {
    /// Whether it is one in how hosts ask for what the broker lost.
    pub(super) fn is_about_questions(self) -> bool {
        matches!(self, Self::ClosesWhatIsKept | Self::ActsOnOldAnswers)
    }

    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::HostPurgesUntold,
        Self::NoMargin,
        Self::ActsOnOldMessages,
        Self::ClosesAtTheEnd,
        Self::ReusesKeysEarly,
        Self::ForgetsTheWay,
        Self::CountsKeysFromTheEnd,
        Self::ClosesWhatIsKept,
        Self::ActsOnOldAnswers,
    ];
}
