//! What can go wrong with a server.

use std::io;

/// Why a server is not to be had, or did not do what it was asked.
///
/// Each reads as one sentence that says what to do, where something can be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server's programs are not on this machine.
    #[error(
        "{server} is not installed: `cargo xtask test` and `cargo xtask services up` install it, and so does: {command}"
    )]
    Missing {
        /// What is missing.
        server: &'static str,
        /// The command that installs it on Debian and Ubuntu.
        command: String,
    },
    /// An address that the test command gives is not in the environment.
    #[error(
        "{variable} is not set: run the tests with `cargo xtask test`, or first start servers with \
         `cargo xtask services up` and then `eval \"$(cargo xtask services env)\"`"
    )]
    NotGiven {
        /// The variable of the environment.
        variable: &'static str,
    },
    /// A server ended while it started, or did not answer in time.
    #[error("{server} did not start: {reason}; the end of what it logged:\n{log}")]
    Start {
        /// Which server.
        server: &'static str,
        /// What was seen.
        reason: String,
        /// The last lines of its log.
        log: String,
    },
    /// A server, or a program that asks it, answered with a refusal.
    #[error("{asked} failed: {answer}")]
    Refused {
        /// What was asked of whom.
        asked: String,
        /// The answer.
        answer: String,
    },
    /// A value that was given is of no use.
    #[error("{value:?} is no {expected}")]
    Invalid {
        /// The value.
        value: String,
        /// What it should have been.
        expected: &'static str,
    },
    /// The operating system refused.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was tried.
        doing: String,
        /// What the system says.
        source: io::Error,
    },
}

impl Error {
    /// The error of the operating system while `doing` something.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}
