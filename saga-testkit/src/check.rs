//! What a check is, and how it fails.

use std::error::Error;
use std::fmt;

use saga_core::env::BoxFuture;

/// Why a check failed: what was expected, and what was there instead.
#[derive(Debug)]
pub struct Failed(pub String);

/// How a check ends.
pub type Outcome = Result<(), Failed>;

/// What a check that did not fail says of the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It keeps the clauses.
    Kept,
    /// Nothing, for this reason.
    NotApplicable(&'static str),
}

impl From<()> for Verdict {
    fn from((): ()) -> Self {
        Self::Kept
    }
}

/// What a check needs of the backend beyond the contract. Where it is missing, the check is skipped aloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Several processes work on the data at once.
    Shared,
    /// Only one process works on the data.
    Alone,
    /// A step transaction can start the sagas whose first steps it runs.
    StartsInTransactions,
    /// Processes tell each other what there is to do.
    Hints,
    /// The harness can end a transaction from inside a handler.
    EndedTransaction,
    /// The harness can lose the answer to a commit.
    UnknownCommit,
    /// The harness can let hours pass on the store's clock.
    Hours,
}

impl Need {
    /// Why a check with this need is skipped.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Shared => "only one process works on this backend's data",
            Self::Alone => "several processes may work on this backend's data",
            Self::StartsInTransactions => "this backend starts no sagas in step transactions, and says so",
            Self::Hints => "the processes of this backend tell each other nothing; they poll",
            Self::EndedTransaction => "the harness cannot end a transaction from inside a handler",
            Self::UnknownCommit => "the harness cannot lose the answer to a commit",
            Self::Hours => "the store's clock is not the harness's, and no check waits for hours",
        }
    }
}

/// One check of a suite, over the bench `B` that it works at.
pub struct Check<B> {
    /// The clauses of the contract that it holds the backend to.
    pub clauses: &'static [&'static str],
    /// Its name.
    pub name: &'static str,
    /// What it needs.
    pub needs: &'static [Need],
    pub(crate) run: fn(B) -> BoxFuture<'static, Result<Verdict, Failed>>,
}

impl<B> Check<B> {
    /// The name under which the runner shows it.
    pub fn id(&self) -> String {
        format!("{}/{}", self.clauses.first().unwrap_or(&""), self.name)
    }

    /// Runs it. A failure says which clauses it broke.
    ///
    /// # Errors
    /// When the backend does not keep a clause.
    ///
    /// # Cancel safety
    /// Dropping it leaves an unused backend behind.
    pub async fn run(&self, bench: B) -> Outcome {
        self.verdict(bench).await.map(drop)
    }

    /// The same, with what it says of the backend where it does not fail.
    pub(crate) async fn verdict(&self, bench: B) -> Result<Verdict, Failed> {
        (self.run)(bench).await.map_err(|failed| self.failed(&failed.0))
    }

    /// A failure that says which clauses are broken.
    pub(crate) fn failed(&self, problem: &str) -> Failed {
        Failed(format!("{}: {problem}", self.clauses.join(", ")))
    }
}

impl<B> fmt::Debug for Check<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("clauses", &self.clauses).field("name", &self.name).finish_non_exhaustive()
    }
}

impl<E: Error> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(format!("a call failed that should not: {error}"))
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Ends the check, unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($expected:tt)+) => {
        if !$condition {
            return Err($crate::check::Failed(format!($($expected)+)));
        }
    };
}

/// Ends the check, unless both are equal.
macro_rules! ensure_eq {
    ($actual:expr, $expected:expr, $($what:tt)+) => {{
        let (actual, expected) = (&$actual, &$expected);
        if actual != expected {
            return Err($crate::check::Failed(format!(
                "{}: expected {expected:?}, got {actual:?}",
                format_args!($($what)+)
            )));
        }
    }};
}

pub(crate) use {ensure, ensure_eq};
