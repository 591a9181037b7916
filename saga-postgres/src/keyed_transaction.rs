//! The transaction of a request that takes effect once: admit, body, record, commit.
//!
//! It has one round trip more than the body alone would have: the key is locked and looked up by the message that begins
//! the transaction.

use std::time::Duration;

use saga_core::store::{Admission, KeyVerdict, KeyedBody, KeyedRequest, RetryClass, StoreError, StoreErrorKind};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _};

use crate::clock::micros;
use crate::connection::PooledConn;
use crate::error::{
    FAILED_TRANSACTION, begin_error, handlers_commit_error, is_answer_of_server, sql_state, store_error,
};
use crate::idempotency::{admission, unanswered};
use crate::rows::signed;
use crate::store::PostgresStore;

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
    let mut conn = store.acquire(OPERATION).await?;
    let admitted = match admit(store, &mut conn, request.as_ref()).await? {
        Admission::Granted(admitted) => admitted,
        other => {
            roll_back(conn).await;
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
                let error = record_error(error);
                roll_back(conn).await;
                return Err(error);
            }
            response
        }
    };
    let recorded = record(store, &mut conn, request.as_ref(), &admitted, &response).await;
    if let Err(error) = recorded {
        if is_answer_of_server(&error) || error.kind() == StoreErrorKind::Misuse {
            roll_back(conn).await;
        }
        return Err(error);
    }
    commit(store, conn).await
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
    let text = |text: &str| format!("convert_from(decode('{}', 'hex'), 'UTF8')", hex(text.as_bytes()));
    let key = &request.key;
    let (tenant, principal, text) = (text(key.tenant().as_str()), text(key.principal()), text(key.as_str()));
    format!("{tenant}, {principal}, {text}, decode('{}', 'hex'), {}", hex(&request.fingerprint), micros(request.ttl))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    digits.map(char::from).collect()
}

async fn record(
    store: &PostgresStore,
    conn: &mut PgConnection,
    request: Option<&KeyedRequest>,
    admitted: &Admitted,
    response: &[u8],
) -> Result<(), StoreError> {
    let sql = "SELECT {schema}.record_response($1, $2, $3, $4, $5, $6, $7, $8)";
    let key = request.map(|request| &request.key);
    let query = sqlx::query(store.sql(sql))
        .bind(&admitted.xact)
        .bind(key.map(|key| key.tenant().as_str()))
        .bind(key.map(|key| key.principal()))
        .bind(key.map(|key| key.as_str()))
        .bind(request.map(|request| &request.fingerprint[..]))
        .bind(signed(admitted.epoch))
        .bind(request.map(|request| micros(request.ttl)))
        .bind(response);
    let row = query.persistent(store.prepares_statements()).fetch_one(conn).await.map_err(record_error)?;
    if row.try_get(0).map_err(record_error)? {
        return Ok(());
    }
    let detail = "the body ended the transaction that it was given, so what it wrote is not kept under its key";
    Err(StoreError::new(StoreErrorKind::Misuse, OPERATION, detail))
}

async fn commit(store: &PostgresStore, mut conn: PooledConn) -> Result<Admission<()>, StoreError> {
    if let Some(lost) = store.commit_fault.take(OPERATION) {
        lost.end_raw(&mut conn).await?;
        conn.release();
        return Err(lost.error(OPERATION));
    }
    match conn.execute(sqlx::raw_sql("COMMIT")).await {
        Ok(_) => {
            conn.release();
            Ok(Admission::Granted(()))
        }
        Err(error) => {
            let refused = Err(handlers_commit_error(OPERATION, error));
            conn.release_if_usable(&refused);
            refused
        }
    }
}

/// The server rolls back by itself where this does not arrive: the connection is closed then.
async fn roll_back(mut conn: PooledConn) {
    if conn.execute(sqlx::raw_sql("ROLLBACK")).await.is_ok() {
        conn.release();
    }
}

/// The error of a statement of the store after the body.
fn record_error(error: sqlx::Error) -> StoreError {
    if sql_state(&error).as_deref() == Some(FAILED_TRANSACTION) {
        let detail = "a statement of the body failed, and it went on as if nothing had happened";
        return StoreError::new(StoreErrorKind::Other, OPERATION, detail).with_source(error);
    }
    store_error(OPERATION, error)
}
