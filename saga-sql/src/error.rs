use std::error::Error;
use std::fmt;

use saga_core::{IntoStepError, StepError};

/// The longest statement that an error repeats, in characters.
const SQL_MAX: usize = 120;

/// Why a statement gave nothing.
///
/// In a step that returns [`StepError`], `?` makes it a failure that is retried, whatever its kind. A step that takes
/// one for a business failure says so, for example by
/// [`or_reject`](saga_core::step::StepResultExt::or_reject).
#[derive(Debug)]
pub struct SqlError {
    kind: SqlErrorKind,
    sql: &'static str,
    source: Box<dyn Error + Send + Sync>,
}

/// What a [`SqlError`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SqlErrorKind {
    /// A row with the same key exists already. The same statement fails again, until the other row is gone.
    ///
    /// On PostgreSQL a transaction in which a statement failed takes no other one, and writes nothing. Use `ON CONFLICT DO NOTHING` where
    /// the row may exist: it works on both databases.
    UniqueViolation,
    /// Another rule of a table is broken: `CHECK`, `NOT NULL` or a foreign key. The same statement fails again.
    ConstraintViolation,
    /// A parameter has no value for the database, or the statement does not have it. A change of the program helps.
    Parameter,
    /// The rows are not what was asked for: their number, or a type of a column. A change of the program helps.
    Row,
    /// Another error of the database. Retrying may help: it is a lock, a lost connection, a missing table.
    Database,
}

impl SqlError {
    pub(crate) fn new(kind: SqlErrorKind, sql: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, sql, source: source.into() }
    }

    /// What it is about.
    pub fn kind(&self) -> SqlErrorKind {
        self.kind
    }

    /// The statement.
    pub fn sql(&self) -> &'static str {
        self.sql
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot run `")?;
        let mut length = 0;
        for (number, word) in self.sql.split_whitespace().enumerate() {
            length += word.chars().count() + 1;
            if number > 0 && length > SQL_MAX {
                f.write_str(" ..")?;
                break;
            }
            let space = if number > 0 { " " } else { "" };
            write!(f, "{space}{word}")?;
        }
        f.write_str("`")
    }
}

/// The source is the error of the database's driver, by which the runtime knows a conflict of transactions.
impl Error for SqlError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// It is retried.
impl IntoStepError for SqlError {
    fn into_step_error(self) -> StepError {
        StepError::retry(self)
    }
}
