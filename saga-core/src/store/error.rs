//! How a store says that something failed.

use std::error::Error;
use std::fmt;

/// The kind of the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The backend cannot be reached, or the connection broke.
    Unavailable,
    /// The backend aborted the call in favour of another transaction: a deadlock, a lock timeout, a serialization
    /// failure.
    Conflict,
    /// The answer to a commit did not arrive.
    UnknownCommit,
    /// The data is not as this version of the runtime writes it.
    Corrupt,
    /// The data was written by a newer version of the runtime.
    NewerSchema,
    /// The store cannot be written: a read-only folder, missing rights.
    NotWritable,
    /// The store has no room, for example because its disk is full. This passes when an operator makes room.
    Full,
    /// The given file, database or schema is not a store.
    NotAStore,
    /// The call breaks the contract: two changes of one saga in one call, or a connection that is not in a transaction.
    Misuse,
    /// The backend answered with an error that has no kind of its own.
    Other,
}

/// Whether trying again helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryClass {
    /// It certainly did not happen, and may succeed the next time.
    Transient,
    /// It certainly did not happen, and will not until the code, the settings or the data are changed.
    Permanent,
    /// It may have happened.
    Unknown,
}

/// A failed store call: the kind of the error, whether retrying helps, the operation, and the reason.
///
/// `Display` is one line; `Debug` has the source too.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    class: RetryClass,
    operation: &'static str,
    detail: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// An error of this kind in this operation, with the kind's usual retry class.
    pub fn new(kind: StoreErrorKind, operation: &'static str, detail: impl Into<String>) -> Self {
        let class = match kind {
            StoreErrorKind::Unavailable | StoreErrorKind::Conflict | StoreErrorKind::Full => RetryClass::Transient,
            StoreErrorKind::UnknownCommit => RetryClass::Unknown,
            _ => RetryClass::Permanent,
        };
        Self { kind, class, operation, detail: detail.into(), source: None }
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error with another retry class.
    #[must_use]
    pub fn with_class(mut self, class: RetryClass) -> Self {
        self.class = class;
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether trying again helps.
    pub fn class(&self) -> RetryClass {
        self.class
    }

    /// The operation that failed.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// The reason, without the operation.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.detail)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}
