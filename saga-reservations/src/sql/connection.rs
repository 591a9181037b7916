//! A transaction on a connection of a PostgreSQL pool, for a limited time.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Connection as _, Executor as _, PgConnection, PgPool, Postgres, SqlStr};
use tokio::time::timeout;

use super::work::{Work, WorkError};

/// How long a transaction may take. A connection whose other end is gone without a word stays open, and its transaction would hold
/// up all operations behind it. Several statements may wait for a locked resource, for five seconds each.
const TRANSACTION_MAX: Duration = Duration::from_secs(30);

/// Prepared on each connection that keeps statements: one that has none yet, `saga_sql` takes for one that keeps none.
const FIRST_STATEMENT: &str = "SELECT 1";

/// A connection of the pool. Unless its transaction has ended it is closed: the pool takes back only a connection that answers,
/// and waits for that without a limit.
struct Borrowed {
    connection: PoolConnection<Postgres>,
    has_ended: bool,
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if !self.has_ended {
            self.connection.close_on_drop();
        }
    }
}

/// Runs the work in a transaction of its own.
pub(super) async fn transact<W: Work>(
    pool: &PgPool,
    keeps_statements: bool,
    work: W,
    clock_shift: i64,
) -> Result<W::Answer, WorkError> {
    let mut borrowed = Borrowed { connection: pool.acquire().await?, has_ended: false };
    let working = work_on(&mut borrowed.connection, keeps_statements, work, clock_shift);
    let answer = timeout(TRANSACTION_MAX, working).await.map_err(|_| WorkError::Unanswered(TRANSACTION_MAX))?;
    borrowed.has_ended = true;
    answer
}

async fn work_on<W: Work>(
    connection: &mut PgConnection,
    keeps_statements: bool,
    work: W,
    clock_shift: i64,
) -> Result<W::Answer, WorkError> {
    // A transaction that is dropped is rolled back.
    let mut tx = connection.begin().await?;
    if keeps_statements && tx.cached_statements_size() == 0 {
        tx.prepare(SqlStr::from_static(FIRST_STATEMENT)).await?;
    }
    let answer = work.run(&mut *tx, clock_shift).await?;
    if W::has_written(&answer) {
        tx.commit().await?;
    } else {
        tx.rollback().await?;
    }
    Ok(answer)
}
