/// A mistake about reservations that is made on purpose. The model finds each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mistake {
    /// The sweeper ends the holds that it has read, whatever became of them since.
    SweepsWhatItRead,
    /// A server decides by its own clock, which is late.
    ServersClock,
    /// The sweeper ends holds by its own clock, which is ahead.
    SweepersClock,
    /// Each release adds the units.
    ReleaseAddsTwice,
    /// The token is not compared.
    TokenIgnored,
    /// A release before its request leaves nothing.
    NoTombstone,
    /// The lines of a request are reserved one after the other.
    LinesOneByOne,
    /// An extension looks only at whether the hold was swept.
    ExtendRevives,
    /// A request is refused though units are kept only for holds that are over.
    RefusesUnswept,
    /// The rows are read before they are locked, and written as they were decided.
    DecidesOnOldRows,
    /// What has ended is forgotten while its request may still come again.
    ForgetsEarly,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::SweepsWhatItRead,
        Self::ServersClock,
        Self::SweepersClock,
        Self::ReleaseAddsTwice,
        Self::TokenIgnored,
        Self::NoTombstone,
        Self::LinesOneByOne,
        Self::ExtendRevives,
        Self::RefusesUnswept,
        Self::DecidesOnOldRows,
        Self::ForgetsEarly,
    ];
}
