//! The transaction of a request that takes effect once: admit, body, keep and commit.
//!
//! It has no more round trips than the body alone would have: one message begins the transaction, locks the key and looks
//! it up; another keeps the response and commits. A response that this process has seen is first looked up alone.

use std::time::Duration;

use saga_core::store::{
    Admission, IdempotencyKey, KeyVerdict, KeyedBody, KeyedRequest, RetryClass, StoreError, StoreErrorKind,
};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _};

use crate::clock::micros;
use crate::error::{
    ENDED_REQUEST, FAILED_TRANSACTION, begin_error, handlers_commit_error, is_answer_of_server, sql_state, store_error,
};
use crate::requests::admission::{admission, unanswered};
use crate::rows::rows::signed;
use crate::store::connection::PooledConn;
use crate::store::store::PostgresStore;

pub(crate) const OPERATION: &str = "run_once";

/// How long the transaction may wait between two statements, before the server takes its process for stopped.
const IDLE_MILLIS_MAX: u32 = 60_000;

/// How long the rollback of an abandoned body may take.
const ABANDONED_ROLLBACK_MAX: Duration = Duration::from_secs(1);

/// A request that was admitted.
struct Admitted {
    epoch: u64,
    /// The id of its transaction.
    xact: String,
}

pub(crate) async fn run(
    store: &PostgresStore,
    request: Option<KeyedRequest>,
    mut body: Box<dyn KeyedBody<PgConnection>>,
) -> Result<Admission<()>, StoreError> {
    if let Some(request) = request.as_ref().filter(|request| store.shared().kept_keys.has(&request.key))
        && let Some(answer) = store.kept_response(request).await?
    {
        return Ok(answer);
    }
    let mut conn = store.acquire(OPERATION).await?;
    let admitted = match admit(store, &mut conn, request.as_ref()).await? {
        Admission::Granted(admitted) => admitted,
        other => {
            roll_back(conn).await;
            if let Some(request) = &request {
                store.shared().kept_keys.add(&request.key);
            }
            return Ok(match other {
                Admission::Replay(response) => Admission::Replay(response),
                Admission::InFlight => Admission::InFlight,
                _ => Admission::OtherRequest,
            });
        }
    };
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
            let back = format!("ROLLBACK TO SAVEPOINT {}", store.shared().savepoint);
            if let Err(error) = conn.execute(sqlx::raw_sql(AssertSqlSafe(back))).await {
                let error = kept_error(error);
                roll_back(conn).await;
                return Err(error);
            }
            response
        }
    };
    keep(store, conn, request.as_ref(), &admitted, &response).await
}

/// Begins the transaction, locks the key and sets the savepoint, by one message.
async fn admit(
    store: &PostgresStore,
    conn: &mut PgConnection,
    request: Option<&KeyedRequest>,
) -> Result<Admission<Admitted>, StoreError> {
    let begin = store.shared().options.begin();
    let arguments = request.map_or_else(|| "NULL, NULL, NULL, NULL, NULL".to_owned(), arguments);
    let sql = format!(
        "{begin}; SET LOCAL idle_in_transaction_session_timeout = {IDLE_MILLIS_MAX}; \
         SELECT verdict, new_epoch, kept, xact FROM {}.admit_request({arguments}, NULL); SAVEPOINT {}",
        store.shared().quoted_schema,
        store.shared().savepoint
    );
    let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(conn).await;
    let rows = rows.map_err(|error| begin_error(OPERATION, error))?;
    let row = rows.first().ok_or_else(|| unanswered(OPERATION))?;
    let failed = |error| store_error(OPERATION, error);
    Ok(match admission(row).map_err(failed)? {
        Admission::Granted(epoch) => Admission::Granted(Admitted { epoch, xact: row.try_get(3).map_err(failed)? }),
        Admission::Replay(response) => Admission::Replay(response),
        Admission::InFlight => Admission::InFlight,
        Admission::OtherRequest => Admission::OtherRequest,
    })
}

/// The arguments as literals, in hexadecimal digits: a statement with bound values would be a message of its own.
fn arguments(request: &KeyedRequest) -> String {
    format!("{}, {}, {}", key_literals(&request.key), bytes(&request.fingerprint), micros(request.ttl))
}

fn key_literals(key: &IdempotencyKey) -> String {
    let text = |text: &str| format!("convert_from({}, 'UTF8')", bytes(text.as_bytes()));
    format!("{}, {}, {}", text(key.tenant().as_str()), text(key.principal()), text(key.as_str()))
}

fn bytes(bytes: &[u8]) -> String {
    format!("decode('{}', 'hex')", hex(bytes))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    digits.map(char::from).collect()
}

/// Keeps the response and commits, by one message. The server skips the commit if the response cannot be kept.
async fn keep(
    store: &PostgresStore,
    mut conn: PooledConn,
    request: Option<&KeyedRequest>,
    admitted: &Admitted,
    response: &[u8],
) -> Result<Admission<()>, StoreError> {
    let keep = keep_sql(store, request, admitted, response);
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

fn keep_sql(store: &PostgresStore, request: Option<&KeyedRequest>, admitted: &Admitted, response: &[u8]) -> String {
    let function = format!("SELECT {}.keep_response('{}'", store.shared().quoted_schema, admitted.xact);
    let Some(request) = request else {
        return format!("{function}, NULL, NULL, NULL, NULL, NULL, NULL, NULL)");
    };
    let (key, epoch) = (key_literals(&request.key), signed(admitted.epoch));
    let (fingerprint, ttl) = (bytes(&request.fingerprint), micros(request.ttl));
    format!("{function}, {key}, {fingerprint}, {epoch}, {ttl}, {})", bytes(response))
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
        Some(ENDED_REQUEST) => {
            let detail = "the body ended the transaction that it was given, so what it wrote is not kept under its key";
            failed(StoreErrorKind::Misuse, detail).with_source(error)
        }
        _ => handlers_commit_error(OPERATION, error),
    }
}
