//! The step transaction: claim, handlers, record, commit.

use saga_core::store::{Claim, RetryClass, StoreErrorKind, TransactError, TransactionBody};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Postgres, Transaction};

use crate::connection::Lent;
use crate::error::{commit_error, store_error};
use crate::handlers::{self, Stopped, begin_statement};
use crate::store::PostgresStore;

pub(crate) const OPERATION: &str = "transact";

pub(crate) type Body = Box<dyn TransactionBody<PgConnection>>;

/// Runs one step transaction. Nobody drops it half way: it is a task of its own.
pub(crate) async fn transact(store: &PostgresStore, claims: &[Claim], body: &mut Body) -> Result<(), TransactError> {
    let mut conn = store.lend(OPERATION).await?;
    let begin = begin_statement(store, claims, body);
    let mut tx = conn.begin_with(AssertSqlSafe(begin)).await.map_err(|error| store_error(OPERATION, error))?;
    let ran = handlers::run(store, &mut tx, claims, body).await;
    let statistics = &store.shared().statistics;
    let commands = match ran {
        Ok(0) => {
            if tx.rollback().await.is_ok() {
                unguard(store, conn).await;
            }
            return Ok(());
        }
        Ok(commands) => commands,
        Err(Stopped { error, is_tainted }) => {
            statistics.rollbacks.add(1);
            if is_tainted {
                // The server rolls back when it sees that the connection is closed.
                statistics.cut.add(1);
            } else if tx.rollback().await.is_ok() {
                unguard(store, conn).await;
            }
            return Err(error);
        }
    };
    match commit(store, tx, commands).await {
        Ok(()) => {
            conn.done();
            statistics.transactions.add(1);
            statistics.commands.add(commands);
            Ok(())
        }
        Err(error) => {
            statistics.rollbacks.add(1);
            if error.error.class() != RetryClass::Unknown {
                unguard(store, conn).await;
            }
            Err(error)
        }
    }
}

/// Gives a connection back whose transaction was rolled back, and with it the statement that takes the guard away.
async fn unguard(store: &PostgresStore, mut conn: Lent) {
    if !store.guards_outside() || conn.execute("SET default_transaction_read_only = off").await.is_ok() {
        conn.done();
    }
}

async fn commit(store: &PostgresStore, tx: Transaction<'_, Postgres>, commands: usize) -> Result<(), TransactError> {
    if let Some(doubt) = store.doubt_of(OPERATION) {
        doubt.settle(tx).await?;
        return Err(doubt.error(OPERATION).into());
    }
    tx.commit().await.map_err(|error| {
        let error = commit_error(OPERATION, error);
        // Alone in its transaction, the only handler is to blame for what the commit refused.
        let is_to_blame = commands == 1 && error.kind() == StoreErrorKind::Other;
        TransactError { error, culprit: is_to_blame.then_some(0), ended_transaction: false }
    })
}
