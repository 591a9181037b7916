//! What is counted.

saga_testkit::counted! {
    /// What a number of steps cost the server.
    pub(crate) struct Cost {
        /// Commits that were written to the log and flushed.
        commits: "commits",
        /// Statements that were sent, each of a message of several counted by itself.
        statements: "statements",
        /// Times that the client spoke and had to wait for an answer.
        round_trips: "round trips",
        /// Records in the server's log.
        wal_records: "WAL records",
    }
}
