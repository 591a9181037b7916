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
    /// What the debt file calls it; none if the rule allows no debt.
    pub(crate) offender: Option<Offender>,
}

/// An offender by its name: it stays the same while lines are added above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offender {
    pub(crate) rule: &'static str,
    pub(crate) item: String,
}

impl Finding {
    pub(crate) fn error(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { level: Level::Error, path: path.to_owned(), line, message: message.into(), offender: None }
    }

    pub(crate) fn warning(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::error(path, line, message) }
    }

    /// An error that the debt file may know.
    pub(crate) fn of_rule(
        rule: &'static str,
        path: &str,
        line: usize,
        item: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let offender = Some(Offender { rule, item: item.into() });
        Self { offender, ..Self::error(path, line, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Warning => "warning",
            Level::Error => "error",
        };
        write!(formatter, "{level}: {}:{}: ", self.path, self.line)?;
        if let Some(offender) = &self.offender {
            write!(formatter, "{}: ", offender.rule)?;
        }
        formatter.write_str(&self.message)
    }
}
