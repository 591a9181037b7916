//! Starts a saga, and publishes an event, in the caller's own transaction.

use async_trait::async_trait;
use saga_core::store::{NewMessage, NewSaga, SagaId, StartIn, Started, StoreError, WorkId};
use sqlx::{Executor as _, PgConnection};

use crate::error::{Commits, NO_TRANSACTION, misuse, sql_state, store_error};
use crate::options::Relay;
use crate::rows::rows::clean;
use crate::store::lock_wait::LockWait;
use crate::store::sagas::definitions_of;
use crate::store::store::PostgresStore;

#[async_trait]
impl StartIn for PostgresStore {
    /// On any connection to the store's database that is in a transaction: the one that a step is given, or one that the
    /// application opened itself.
    ///
    /// It waits for another transaction that starts the same key, as inserting any taken key does.
    async fn start_in(&self, conn: &mut PgConnection, saga: NewSaga) -> Result<Started, StoreError> {
        let operation = "start_in";
        set_savepoint(conn, operation).await?;
        let started = self.start_in_savepoint(conn, operation, saga).await;
        end_savepoint(conn, operation, started).await
    }

    /// On any connection that [`start_in`](Self::start_in) takes.
    ///
    /// In a transaction that is not `READ COMMITTED` it fails if another transaction published under the same key
    /// meanwhile.
    async fn publish_in(&self, conn: &mut PgConnection, message: NewMessage) -> Result<(), StoreError> {
        let operation = "publish_in";
        set_savepoint(conn, operation).await?;
        let published = self.publish_in_savepoint(conn, &message).await;
        let published = published.map_err(|error| store_error(operation, error));
        end_savepoint(conn, operation, published).await
    }
}

/// The caller may commit although this failed, so a failed write must leave nothing. Outside a transaction there are no
/// savepoints, and the server says so.
async fn set_savepoint(conn: &mut PgConnection, operation: &'static str) -> Result<(), StoreError> {
    let Err(error) = conn.execute("SAVEPOINT saga_in").await else { return Ok(()) };
    let is_bare = sql_state(&error).as_deref() == Some(NO_TRANSACTION);
    Err(if is_bare {
        misuse(operation, "the connection is not in a transaction; begin one")
    } else {
        store_error(operation, error)
    })
}

async fn end_savepoint<T>(
    conn: &mut PgConnection,
    operation: &'static str,
    done: Result<T, StoreError>,
) -> Result<T, StoreError> {
    let end = if done.is_ok() {
        "RELEASE SAVEPOINT saga_in"
    } else {
        "ROLLBACK TO SAVEPOINT saga_in; RELEASE SAVEPOINT saga_in"
    };
    let ended = conn.execute(end).await.map_err(|error| store_error(operation, error));
    let done = done?;
    ended?;
    Ok(done)
}

impl PostgresStore {
    async fn start_in_savepoint(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        mut saga: NewSaga,
    ) -> Result<Started, StoreError> {
        let count = u32::try_from(saga.commands.len() + 1).unwrap_or(u32::MAX);
        let ids = self.ids_on(conn, operation, count).await?;
        saga.id = SagaId(ids.start);
        for (command, id) in saga.commands.iter_mut().zip(ids.skip(1)) {
            command.id = WorkId(id);
            command.saga = saga.id;
            // The caller commits later: a row that is inserted leased could run before that, or wait long after it.
            command.lease = None;
        }
        let numbers = self
            .number_definitions(conn, operation, definitions_of(&saga).into_iter(), LockWait::AsInTransaction, false)
            .await?;
        let mut started =
            self.start_on(conn, operation, &[saga], &numbers, LockWait::AsInTransaction, Commits::Later).await?;
        started.pop().ok_or_else(|| misuse(operation, "a start was not answered"))
    }

    /// The lock on the counter's row lasts until the caller's transaction ends. The date is exact to an hour only, since
    /// each other one is written to an index.
    async fn publish_in_savepoint(&self, conn: &mut PgConnection, new: &NewMessage) -> Result<(), sqlx::Error> {
        let sql = "WITH counted AS (INSERT INTO {schema}.published AS p \
                 (tenant, aggregatetype, aggregateid, position, published_at) \
             VALUES ($1, $2, $3, 1, clock_timestamp()) ON CONFLICT (tenant, aggregatetype, aggregateid) \
             DO UPDATE SET position = p.position + 1, published_at = CASE \
                 WHEN p.published_at > clock_timestamp() - interval '1 hour' THEN p.published_at \
                 ELSE clock_timestamp() END RETURNING p.position) \
             INSERT INTO {schema}.outbox (id, lane, tenant, aggregatetype, aggregateid, type, position, committed_at, \
             payload, kind, headers) \
             SELECT $4, $5, $1, $2, $3, $6, c.position, clock_timestamp(), $7, $8, $9 FROM counted c";
        let insert = sqlx::query(self.sql(sql))
            .bind(new.tenant.as_str())
            .bind(clean(&new.aggregate_type))
            .bind(clean(&new.aggregate_id))
            .bind(new.id.0)
            .bind(i16::from(new.lane))
            .bind(clean(&new.event_type))
            .bind(&*new.payload)
            .bind(new.kind.as_str())
            .bind(new.headers.encode());
        insert.persistent(self.prepares_statements()).execute(&mut *conn).await?;
        if self.shared().options.relay == Relay::Cdc {
            // A second statement, since the first one does not see the row that it inserted.
            let delete = sqlx::query(self.sql("DELETE FROM {schema}.outbox WHERE id = $1")).bind(new.id.0);
            delete.persistent(self.prepares_statements()).execute(conn).await?;
        }
        Ok(())
    }
}
