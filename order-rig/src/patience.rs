//! What is away for a moment is waited for: a database that restarts, a broker or a service that starts later.

use std::{error::Error, time::Duration};

use saga_core::{
    StartError,
    engine::{BuildError, RuntimeError},
    store::{RetryClass, StoreError, StoreErrorKind},
    transport::{TransportError, TransportErrorKind},
};

use crate::{print::say, sentence::sentence};

/// How long between two attempts.
const TRY_EVERY: Duration = Duration::from_millis(200);

/// Tries until it works, for `patience` at most where something is away, and says on standard error that it waits.
/// Whatever else is wrong ends it at once.
pub(crate) async fn wait_for<T>(
    what: &str,
    patience: Duration,
    mut attempt: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut problem = match attempt().await {
        Err(error) if is_away(&error) && !patience.is_zero() => error,
        ended => return ended,
    };
    say(format_args!("waiting up to {patience:?} for {what}: {}", sentence(&problem)));
    let trying = async {
        loop {
            tokio::time::sleep(TRY_EVERY).await;
            match attempt().await {
                Err(error) if is_away(&error) => problem = error,
                ended => return ended,
            }
        }
    };
    let ended = tokio::time::timeout(patience, trying).await;
    ended.unwrap_or(Err(problem))
}

/// Whether the same may work in a moment, since something cannot be reached or has no room.
pub(crate) fn is_away(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let store = store_error(cause).is_some_and(|error| error.class() != RetryClass::Permanent);
        let broker = cause.downcast_ref::<TransportError>();
        let service = cause.downcast_ref::<reqwest::Error>();
        store
            || cause.downcast_ref().is_some_and(is_lost_connection)
            || broker.is_some_and(|error| error.kind() == TransportErrorKind::Unavailable)
            || service.is_some_and(|error| error.is_connect() || error.is_timeout() || error.is_request())
    })
}

/// Whether a disk is full, which only a person can end.
pub(crate) fn is_full(error: &anyhow::Error) -> bool {
    error.chain().filter_map(store_error).any(|error| error.kind() == StoreErrorKind::Full)
}

/// The store's error behind those that hand it on as their own.
fn store_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a StoreError> {
    if let Some(StartError::Store(error)) = cause.downcast_ref() {
        return Some(error);
    }
    if let Some(RuntimeError::Store(error)) = cause.downcast_ref() {
        return Some(error);
    }
    if let Some(BuildError::Store(error)) = cause.downcast_ref() {
        return Some(error);
    }
    cause.downcast_ref()
}

/// Whether PostgreSQL was not reached, ended the connection, or refuses connections for now.
fn is_lost_connection(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(answer) => {
            let state = answer.code().unwrap_or_default();
            ["08", "53", "57"].iter().any(|class| state.starts_with(class))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, io};

    use super::*;

    fn away() -> anyhow::Error {
        StoreError::new(StoreErrorKind::Unavailable, "open", "connection refused").into()
    }

    #[tokio::test]
    async fn what_is_away_is_tried_until_it_is_there() {
        let tries = Cell::new(0);
        let found = wait_for("it", Duration::from_hours(1), async || {
            tries.set(tries.get() + 1);
            if tries.get() < 3 { Err(away()) } else { Ok(tries.get()) }
        });
        assert_eq!(found.await.expect("it came"), 3);
    }

    #[tokio::test]
    async fn it_is_waited_for_no_longer_than_was_said() {
        let ended = wait_for("it", Duration::from_millis(1), async || Err::<(), _>(away())).await;
        assert_eq!(ended.expect_err("it never came").to_string(), "open: connection refused");
    }

    #[tokio::test]
    async fn what_is_wrong_is_not_waited_for() {
        let tries = Cell::new(0);
        let ended = wait_for("it", Duration::from_hours(1), async || {
            tries.set(tries.get() + 1);
            Err::<(), _>(StoreError::new(StoreErrorKind::NotAStore, "open", "no database").into())
        });
        ended.await.expect_err("it is wrong");
        assert_eq!(tries.get(), 1);
    }

    #[test]
    fn only_what_may_pass_is_away() {
        let full = StoreError::new(StoreErrorKind::Full, "start", "no room");
        let lost = || sqlx::Error::Io(io::Error::from(io::ErrorKind::ConnectionReset));
        assert!(is_away(&StartError::Store(full).into()));
        assert!(is_away(&RuntimeError::from(StoreError::new(StoreErrorKind::Conflict, "saga", "")).into()));
        assert!(is_away(&anyhow::Error::from(lost()).context("the tables")));
        assert!(!is_away(&sqlx::Error::RowNotFound.into()));
        assert!(!is_away(&StartError::ShuttingDown.into()));
    }
}
