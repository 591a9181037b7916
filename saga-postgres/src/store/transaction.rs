//! The step transaction: claim, handlers, record, commit.

use async_trait::async_trait;
use saga_core::store::{
    Capabilities, Claim, RetryClass, Store, StoreError, StoreErrorKind, TransactError, TransactionBody,
};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Postgres, Transaction};

use crate::error::{begin_error, handlers_commit_error, is_conflict, task_ended};
use crate::fault_injection::Mutant;
use crate::options::Relay;
use crate::step_transaction::aborted::{Aborted, Body, OPERATION};
use crate::step_transaction::handlers::{self, Savepoints, begin_statement};
use crate::store::connection::PooledConn;
use crate::store::store::PostgresStore;

#[async_trait]
impl Store for PostgresStore {
    type Conn = PgConnection;

    fn capabilities(&self) -> Capabilities {
        let options = &self.shared().options;
        Capabilities {
            shared: true,
            relayed: options.relay == Relay::Runtime,
            ..Capabilities::database("postgres", self.shared().durability.clone(), options.batch_max)
        }
    }

    fn is_conflict(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        error.downcast_ref::<sqlx::Error>().is_some_and(is_conflict)
    }

    /// It runs in its own task, which ends even if the caller is dropped.
    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<PgConnection>>,
    ) -> Result<(), TransactError> {
        let store = self.clone();
        let _held = self.shared().options.clock.hold();
        let mut body = body;
        let task = tokio::spawn(async move { transact(&store, &claims, &mut body).await });
        match task.await {
            Ok(answer) => answer,
            // The engine notices the panic, and counts an attempt.
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            Err(_) => Err(task_ended("transact").into()),
        }
    }
}

/// Runs one step transaction. It is not dropped before its end, since it has its own task.
async fn transact(store: &PostgresStore, claims: &[Claim], body: &mut Body) -> Result<(), TransactError> {
    // A savepoint also shows that the handler before it ended the transaction. Without one, later writes must be
    // refused.
    let savepoints = if store.blocks_writes_outside() { Savepoints::Needed } else { Savepoints::All };
    run_transaction(store, claims, body, savepoints).await.map_err(|stopped| stopped.error)
}

async fn run_transaction(
    store: &PostgresStore,
    claims: &[Claim],
    body: &mut Body,
    savepoints: Savepoints,
) -> Result<(), Aborted> {
    let mut conn = store.acquire(OPERATION).await?;
    let begin = begin_statement(store, claims, body);
    let mut tx = conn.begin_with(AssertSqlSafe(begin)).await.map_err(|error| begin_error(OPERATION, error))?;
    let statistics = &store.shared().statistics;
    let (ran, had_no_savepoint) = match handlers::run(store, &mut tx, claims, body, savepoints).await {
        Ok((ran, _)) if ran.is_empty() => {
            if tx.rollback().await.is_ok() {
                restore_session(store, conn).await;
            }
            return Ok(());
        }
        Ok(ran) => ran,
        Err(stopped) => {
            statistics.rollbacks.add(1);
            if stopped.breaks_connection {
                // The server rolls back when it sees that the connection is closed.
                statistics.connections_closed.add(1);
            } else if tx.rollback().await.is_ok() {
                restore_session(store, conn).await;
            }
            return Err(stopped);
        }
    };
    let committed = commit(store, tx, ran.len()).await;
    match committed {
        Ok(()) if conn.is_in_transaction() && !store.is_mutant(Mutant::SkipsNestingCheck) => {
            // The commit only released a savepoint. The connection is closed; this rollback releases its locks earlier.
            statistics.rollbacks.add(1);
            statistics.connections_closed.add(1);
            _ = conn.execute("ROLLBACK").await;
            Err(Aborted { error: left_open(ran.len()), breaks_connection: true })
        }
        Ok(()) => {
            conn.release();
            statistics.transactions.add(1);
            statistics.commands.add(ran.len());
            statistics.without_savepoint.add(usize::from(had_no_savepoint));
            Ok(())
        }
        Err(error) => {
            statistics.rollbacks.add(1);
            if error.error.class() != RetryClass::Unknown {
                restore_session(store, conn).await;
            }
            Err(Aborted { error, breaks_connection: false })
        }
    }
}

/// Returns a connection whose transaction was rolled back, and which is therefore still read-only.
async fn restore_session(store: &PostgresStore, mut conn: PooledConn) {
    if !store.blocks_writes_outside() || conn.execute("SET default_transaction_read_only = off").await.is_ok() {
        conn.release();
    }
}

async fn commit(store: &PostgresStore, tx: Transaction<'_, Postgres>, commands: usize) -> Result<(), TransactError> {
    if let Some(lost) = store.commit_fault.take(OPERATION) {
        lost.end(tx).await?;
        return Err(lost.error(OPERATION).into());
    }
    tx.commit().await.map_err(|error| {
        let error = handlers_commit_error(OPERATION, error);
        // Alone in its transaction, the only handler is to blame for a refused commit.
        let is_to_blame = commands == 1 && error.kind() == StoreErrorKind::Other;
        TransactError { error, culprit: is_to_blame.then_some(0), ended_transaction: false }
    })
}

/// A handler leaked a nested transaction, so sqlx took our commit for the end of that one.
fn left_open(commands: usize) -> TransactError {
    let detail = "a handler left a transaction open that it had nested in the one that it was given";
    let is_alone = commands == 1;
    TransactError {
        error: StoreError::new(StoreErrorKind::Misuse, OPERATION, detail),
        culprit: is_alone.then_some(0),
        ended_transaction: is_alone,
    }
}
