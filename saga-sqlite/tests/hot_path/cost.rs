//! What is counted.

saga_testkit::counted! {
    /// What a number of steps cost the file.
    pub(crate) struct Cost {
        /// Commits that wrote something.
        commits: "commits",
        /// Statements that were run, the handlers' own among them.
        statements: "statements",
        /// Pages that were written to the write-ahead log: each changed one once a commit.
        pages: "pages",
    }
}
