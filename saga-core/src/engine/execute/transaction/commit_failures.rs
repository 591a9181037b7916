//! How often a batch failed to commit.

/// The name of a step transaction in health and log events.
pub(crate) const OPERATION: &str = "transact";

/// The failed commits of a batch so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failures {
    /// How many commits in a row failed through no fault of the steps.
    pub(crate) so_far: u32,
    /// Whether the store wrote for the same rows just before this transaction.
    pub(crate) works_before: bool,
}
