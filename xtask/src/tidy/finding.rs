//! What a rule found: where, and what to do.

use std::fmt;

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
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
        Self { path: path.to_owned(), line, message: message.into(), offender: None }
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
        write!(formatter, "error: {}:{}: ", self.path, self.line)?;
        if let Some(offender) = &self.offender {
            write!(formatter, "{}: ", offender.rule)?;
        }
        formatter.write_str(&self.message)
    }
}
