//! Starting a saga in the caller's own transaction.

use async_trait::async_trait;
use saga_core::store::{NewSaga, SagaId, StartIn, Started, StoreError, WorkId};
use sqlx::{Executor as _, PgConnection};

use crate::error::{NO_TRANSACTION, misuse, sql_state, store_error};
use crate::sagas::wanted;
use crate::store::PostgresStore;

const OPERATION: &str = "start_in";

#[async_trait]
impl StartIn for PostgresStore {
    /// On any connection to the store's database that is in a transaction: the one that a step is given, or one that the
    /// application opened itself.
    ///
    /// It waits for another transaction that starts the same key, as inserting any taken key does.
    async fn start_in(&self, conn: &mut PgConnection, saga: NewSaga) -> Result<Started, StoreError> {
        // The caller may commit although this failed, so that no half of it may stay. Outside a transaction there are no
        // savepoints, and the server says so.
        if let Err(error) = conn.execute("SAVEPOINT saga_start").await {
            let is_bare = sql_state(&error).as_deref() == Some(NO_TRANSACTION);
            return Err(if is_bare {
                misuse(OPERATION, "the connection is not in a transaction; begin one")
            } else {
                store_error(OPERATION, error)
            });
        }
        let started = self.start_behind_savepoint(conn, saga).await;
        let end = if started.is_ok() {
            "RELEASE SAVEPOINT saga_start"
        } else {
            "ROLLBACK TO SAVEPOINT saga_start; RELEASE SAVEPOINT saga_start"
        };
        let ended = conn.execute(end).await.map_err(|error| store_error(OPERATION, error));
        let started = started?;
        ended?;
        Ok(started)
    }
}

impl PostgresStore {
    async fn start_behind_savepoint(&self, conn: &mut PgConnection, mut saga: NewSaga) -> Result<Started, StoreError> {
        let count = u32::try_from(saga.commands.len() + 1).unwrap_or(u32::MAX);
        let ids = self.ids_on(conn, OPERATION, count).await?;
        saga.id = SagaId(ids.start);
        for (command, id) in saga.commands.iter_mut().zip(ids.skip(1)) {
            command.id = WorkId(id);
            command.saga = saga.id;
            // The commit is the caller's: a row that is born leased could run before it, or wait long behind it.
            command.lease = None;
        }
        let numbers = self.number_definitions(conn, OPERATION, wanted(&saga).into_iter(), false).await?;
        let mut started = self.start_on(conn, OPERATION, &[saga], &numbers, store_error).await?;
        started.pop().ok_or_else(|| misuse(OPERATION, "a start was not answered"))
    }
}
