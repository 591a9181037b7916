//! What a rule found: where, how bad, and what to do.

use std::fmt;

/// Whether a finding fails the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Warning,
    Error,
}

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn error(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { level: Level::Error, path: path.to_owned(), line, message: message.into() }
    }

    pub(crate) fn warning(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::error(path, line, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Warning => "warning",
            Level::Error => "error",
        };
        write!(formatter, "{level}: {}:{}: {}", self.path, self.line, self.message)
    }
}
