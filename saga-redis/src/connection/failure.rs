//! Which errors of Redis mean that it cannot serve now, and which that it refuses.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::error::LockError;

/// The error of a call that failed.
pub(super) fn failure(operation: &'static str, address: &str, error: RedisError) -> LockError {
    let address = address.to_owned();
    if is_refusal(error.kind()) {
        let reason = match error.detail() {
            Some(detail) => format!("{}: {detail}", error.code().unwrap_or_else(|| error.category())),
            None => error.category().to_owned(),
        };
        return LockError::Refused { operation, address, reason };
    }
    LockError::Unavailable { operation, address, source: error.into() }
}

fn is_refusal(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig | ErrorKind::Extension => true,
        ErrorKind::Server(kind) => {
            use ServerErrorKind::{Ask, BusyLoading, ClusterDown, MasterDown, Moved, ReadOnly, TryAgain};
            // They pass when the server has started, or the failover is over.
            !matches!(kind, Ask | BusyLoading | ClusterDown | MasterDown | Moved | ReadOnly | TryAgain)
        }
        _ => false,
    }
}

/// Why there is no answer.
pub(super) enum Unsent {
    Error(RedisError),
    /// The server that was connected to is not fit for locks.
    Unfit(String),
}

impl Unsent {
    pub(super) fn into_error(self, operation: &'static str, address: &str) -> LockError {
        match self {
            Self::Error(error) => failure(operation, address, error),
            Self::Unfit(reason) => LockError::Refused { operation, address: address.to_owned(), reason },
        }
    }
}

/// The error of a call that was given up.
pub(super) fn timed_out() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}
