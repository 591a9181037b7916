//! The transaction of a request that takes effect once: admit, body, keep and commit.
//!
//! It has no more round trips than the body alone would have: one message begins the transaction, locks the key and looks
//! it up; another keeps the response and commits. A response that this process has seen is first looked up without a transaction, and so
//! is each one while other processes have kept many of those that come.

use std::time::Duration;

use saga_core::store::{Admission, KeyVerdict, KeyedBody, KeyedRequest, RetryClass, StoreError, StoreErrorKind};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use crate::error::{
    FAILED_TRANSACTION, NO_CURSOR, NO_STATEMENT, begin_error, handlers_commit_error, is_answer_of_server, not_writable,
    sql_state, store_error,
};
use crate::requests::admission::{Lock, unanswered};
use crate::store::connection::PooledConn;
use crate::store::store::PostgresStore;

pub(crate) const OPERATION: &str = "run_once";

/// How long the rollback of an abandoned body may take.
const ABANDONED_ROLLBACK_MAX: Duration = Duration::from_secs(1);

pub(crate) async fn run(
    store: &PostgresStore,
    request: Option<KeyedRequest>,
    mut body: Box<dyn KeyedBody<PgConnection>>,
) -> Result<Admission<()>, StoreError> {
    let kept_keys = &store.shared().kept_keys;
    if let Some(request) = request.as_ref().filter(|request| kept_keys.is_likely(&request.key))
        && let Some(answer) = store.kept_response(request).await?
    {
        kept_keys.found(&request.key);
        return Ok(answer);
    }
    let mut conn = store.acquire(OPERATION).await?;
    let admission = admit(store, &mut conn, request.as_ref()).await?;
    let Admission::Granted(epoch) = admission else { return refused(store, conn, request.as_ref(), admission).await };
    if request.is_some() {
        kept_keys.missed();
    }
    let response = match body.run(&mut conn).await {
        KeyVerdict::RollBack => {
            roll_back(conn).await;
            return Ok(Admission::Granted(()));
        }
        // The connection may be in the middle of a statement, so it is closed. The rollback before that frees the key at once,
        // and not when the server sees the connection closed.
        KeyVerdict::Abandon => {
            _ = tokio::time::timeout(ABANDONED_ROLLBACK_MAX, conn.execute(sqlx::raw_sql("ROLLBACK"))).await;
            let error = StoreError::new(StoreErrorKind::Other, OPERATION, "the body was dropped before its end");
            return Err(error.with_class(RetryClass::Transient));
        }
        KeyVerdict::Keep(response) => response,
        KeyVerdict::RollBackAndKeep(response) => {
            return keep_alone(store, conn, request.as_ref(), &response).await;
        }
    };
    keep(store, conn, request.as_ref(), epoch, &response).await
}

/// Undoes what the body wrote, and keeps the response in a transaction of its own. Another call may have the key meanwhile:
/// then the answer is that of the key.
async fn keep_alone(
    store: &PostgresStore,
    mut conn: PooledConn,
    request: Option<&KeyedRequest>,
    response: &[u8],
) -> Result<Admission<()>, StoreError> {
    undo(store, &mut conn).await?;
    match admit(store, &mut conn, request).await? {
        Admission::Granted(epoch) => keep(store, conn, request, epoch, response).await,
        admission => refused(store, conn, request, admission).await,
    }
}

/// Rolls the transaction back, unless the body has ended it: what was written behind that cannot be undone.
async fn undo(store: &PostgresStore, conn: &mut PgConnection) -> Result<(), StoreError> {
    let undo = store.shared().request_statements.undo();
    match conn.execute(sqlx::raw_sql(AssertSqlSafe(undo))).await {
        // A statement of the body failed, and its transaction is still open.
        Err(error) if sql_state(&error).is_some_and(|state| state == FAILED_TRANSACTION) => {
            conn.execute(sqlx::raw_sql("ROLLBACK")).await.map_err(|error| store_error(OPERATION, error))?;
            Ok(())
        }
        undone => undone.map(drop).map_err(kept_error),
    }
}

/// Ends the transaction of a request that does not run.
async fn refused(
    store: &PostgresStore,
    conn: PooledConn,
    request: Option<&KeyedRequest>,
    admission: Admission<u64>,
) -> Result<Admission<()>, StoreError> {
    roll_back(conn).await;
    let kept_keys = &store.shared().kept_keys;
    match (request, &admission) {
        // Its response will be kept soon.
        (Some(request), Admission::InFlight) => kept_keys.add(&request.key),
        (Some(request), _) => kept_keys.found(&request.key),
        (None, _) => {}
    }
    Ok(match admission {
        Admission::Replay(response) => Admission::Replay(response),
        Admission::InFlight => Admission::InFlight,
        _ => Admission::OtherRequest,
    })
}

/// Begins the transaction, locks the key and looks it up, by one message. The first one on a connection prepares the
/// statements.
async fn admit(
    store: &PostgresStore,
    conn: &mut PgConnection,
    request: Option<&KeyedRequest>,
) -> Result<Admission<u64>, StoreError> {
    let statements = &store.shared().request_statements;
    let mut answer = rows_of(conn, statements.admit(request)).await;
    if answer.as_ref().is_err_and(|error| sql_state(error).is_some_and(|state| state == NO_STATEMENT)) {
        answer = rows_of(conn, statements.prepare_and_admit(request)).await;
    }
    let rows = answer.map_err(|error| begin_error(OPERATION, error))?;
    let Some((lock, kept)) = rows.split_first() else { return Err(unanswered(OPERATION)) };
    let lock = Lock::read(lock).map_err(|error| store_error(OPERATION, error))?;
    if lock.is_read_only {
        return Err(not_writable(OPERATION, "the transaction is read-only"));
    }
    lock.admission(kept.first()).map_err(|error| store_error(OPERATION, error))
}

async fn rows_of(conn: &mut PgConnection, message: String) -> Result<Vec<PgRow>, sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(message)).fetch_all(conn).await
}

/// Keeps the response and commits, by one message. The server skips the commit if the response cannot be kept.
async fn keep(
    store: &PostgresStore,
    mut conn: PooledConn,
    request: Option<&KeyedRequest>,
    epoch: u64,
    response: &[u8],
) -> Result<Admission<()>, StoreError> {
    let keep = store.shared().request_statements.keep(request, epoch, response);
    if let Some(lost) = store.commit_fault.take(OPERATION) {
        conn.execute(sqlx::raw_sql(AssertSqlSafe(keep))).await.map_err(kept_error)?;
        lost.end_raw(&mut conn).await?;
        conn.release();
        return Err(lost.error(OPERATION));
    }
    if let Err(error) = conn.execute(sqlx::raw_sql(AssertSqlSafe(format!("{keep}; COMMIT")))).await {
        let error = kept_error(error);
        if is_answer_of_server(&error) {
            roll_back(conn).await;
        }
        return Err(error);
    }
    conn.release();
    if let Some(request) = request {
        store.shared().kept_keys.add(&request.key);
    }
    Ok(Admission::Granted(()))
}

/// The server rolls back by itself where this does not arrive: the connection is closed then.
async fn roll_back(mut conn: PooledConn) {
    if conn.execute(sqlx::raw_sql("ROLLBACK")).await.is_ok() {
        conn.release();
    }
}

/// The error of a message after the body.
fn kept_error(error: sqlx::Error) -> StoreError {
    let failed = |kind, detail| StoreError::new(kind, OPERATION, detail);
    match sql_state(&error).as_deref() {
        Some(FAILED_TRANSACTION) => {
            let detail = "a statement of the body failed, and it went on as if nothing had happened";
            failed(StoreErrorKind::Other, detail).with_source(error)
        }
        Some(NO_CURSOR) => {
            let detail = "the body ended the transaction that it was given, so what it wrote is not kept under its key";
            failed(StoreErrorKind::Misuse, detail).with_source(error)
        }
        _ => handlers_commit_error(OPERATION, error),
    }
}
