//! Which errors of Redis mean that it cannot serve now, and which that it refuses.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::error::LockError;

/// What a server answers for a while: a script of another client runs, a failover has left it too few replicas, its disk is full. The
/// library has no kinds for them.
const PASSING: [&str; 3] = ["BUSY", "NOREPLICAS", "MISCONF"];

/// The error of a call that failed.
pub(super) fn failure(operation: &'static str, address: &str, error: RedisError) -> LockError {
    let address = address.to_owned();
    if is_refused(&error) {
        let reason = match error.detail() {
            Some(detail) => format!("{}: {detail}", error.code().unwrap_or_else(|| error.category())),
            None => error.category().to_owned(),
        };
        return LockError::Refused { operation, address, reason };
    }
    LockError::Unavailable { operation, address, source: error.into() }
}

/// Whether the same call would be refused again.
pub(super) fn is_refused(error: &RedisError) -> bool {
    is_refusal(error.kind()) && !error.code().is_some_and(|code| PASSING.contains(&code))
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
#[derive(Clone)]
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

/// The error of a connection that was not opened. Where the port seems to be of the other kind, it says so.
pub(super) fn not_connected(
    operation: &'static str,
    address: &str,
    is_encrypted: bool,
    error: RedisError,
) -> LockError {
    // A server without TLS waits for more, or its answer is no TLS.
    let is_without_tls = error.is_timeout() || error.to_string().contains("corrupt message");
    let hint = match is_encrypted {
        false if error.is_connection_dropped() && !error.is_connection_refusal() => {
            "it hung up; if its port is for TLS, write rediss:// in the address"
        }
        true if is_without_tls => "if its port is not for TLS, write redis:// in the address",
        _ => return failure(operation, address, error),
    };
    LockError::Unavailable { operation, address: address.to_owned(), source: format!("{error}: {hint}").into() }
}

/// The error of a call that was given up.
pub(super) fn timed_out() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}
