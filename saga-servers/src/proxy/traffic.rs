//! What a proxy lets through, and what went through.

use std::time::Duration;

use super::cut::Direction;

/// What a proxy does with bytes and new connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Traffic {
    /// All pass.
    #[default]
    Flows,
    /// Nothing passes for now; all of it is kept, and passes when traffic flows again. Connections stay open, and new
    /// ones are taken.
    Stalls,
    /// As [`Stalls`](Self::Stalls), in one direction only.
    StallsIn(Direction),
    /// All pass; each piece from the server is held for so long first, as by a server that is slow to answer.
    SlowAnswers(Duration),
    /// Bytes are taken and thrown away, as by a network that is cut in the middle: neither side is told. The
    /// connections of that time are closed when traffic flows again, since they lack bytes.
    Vanishes,
    /// New connections are closed at once; those that are open go on.
    RefusesNew,
}

/// What went through a proxy since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Connections that were taken.
    pub connections: u64,
    /// Bytes that were passed on to the server.
    pub bytes_to_server: u64,
    /// Bytes that were passed on to the client.
    pub bytes_to_client: u64,
    /// Times that a client spoke first, or again after it had heard from the server: what it has to wait for. Several
    /// messages on end are one.
    pub round_trips: u64,
    /// Connections that were ended by an armed cut.
    pub cuts: u64,
}
