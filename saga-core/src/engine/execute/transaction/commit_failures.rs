//! How often commands failed to commit.

/// What health calls a step transaction.
pub(crate) const DOING: &str = "transact";

/// How commands have failed so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failures {
    /// How many commits in a row failed before, through no fault of their steps.
    pub(crate) so_far: u32,
    /// Whether the store was asked in front of this transaction, and wrote for the same rows.
    pub(crate) works_before: bool,
}
