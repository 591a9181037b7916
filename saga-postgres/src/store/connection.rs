//! Borrowed connections. None is reused in the middle of a transaction.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use saga_core::env::BoxFuture;
use saga_core::store::StoreError;
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Postgres};

use crate::connections::connection_cache::{CacheSlot, ConnectionCache};
use crate::error::{begin_error, commit_error, is_answer_of_server, store_error, task_ended};
use crate::fault_injection::Mutant;
use crate::store::store::PostgresStore;
use crate::test_clock::Held;

/// A borrowed connection. If it is dropped before its call has ended, it is closed: it may be inside a transaction, and
/// the next call would write into that.
pub(crate) struct PooledConn {
    /// Set until this is dropped.
    conn: Option<PoolConnection<Postgres>>,
    slot: Option<CacheSlot>,
    is_reusable: bool,
    /// Only a mutant does not check whether a transaction is still open.
    skips_nesting_check: bool,
    /// A test's clock stands still as long as a connection is borrowed.
    held: Option<Held>,
}

impl PooledConn {
    /// The call has ended, and the connection is outside any transaction. If a step leaked a nested transaction, the
    /// connection is closed: later writes on it would be rolled back.
    pub(crate) fn release(mut self) {
        self.is_reusable = self.skips_nesting_check || !self.is_in_transaction();
    }

    /// The statement has ended, with success or an error of the server. After any other error the connection is closed.
    pub(crate) fn release_if_usable<T>(self, answer: &Result<T, StoreError>) {
        let is_sound = answer.as_ref().map_or_else(is_answer_of_server, |_| true);
        if is_sound {
            self.release();
        }
    }
}

impl Deref for PooledConn {
    type Target = PgConnection;

    #[expect(clippy::expect_used, reason = "it is taken out by the drop alone")]
    fn deref(&self) -> &PgConnection {
        self.conn.as_ref().expect("a connection")
    }
}

impl DerefMut for PooledConn {
    #[expect(clippy::expect_used, reason = "it is taken out by the drop alone")]
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.conn.as_mut().expect("a connection")
    }
}

impl Drop for PooledConn {
    fn drop(&mut self) {
        match (self.conn.take(), self.slot.take()) {
            (Some(mut conn), _) if !self.is_reusable => conn.close_on_drop(),
            (Some(conn), Some(slot)) => slot.put_back(conn),
            _ => {}
        }
    }
}

impl PostgresStore {
    /// Borrows a connection. A caller never borrows a second one.
    pub(crate) async fn acquire(&self, operation: &'static str) -> Result<PooledConn, StoreError> {
        let shared = self.shared();
        let held = shared.options.clock.hold();
        let borrowed = match &shared.cache {
            Some(cache) => {
                let borrowed = tokio::time::timeout(shared.options.acquire_timeout, self.acquire_cached(cache)).await;
                borrowed.unwrap_or(Err(sqlx::Error::PoolTimedOut))
            }
            // The application's pool has its own timeout.
            None => shared.pool.acquire().await.map(|conn| self.pooled(conn, None)),
        };
        let mut conn = borrowed.map_err(|error| store_error(operation, error))?;
        shared.options.clock.show(operation, &shared.quoted_schema, &mut conn).await?;
        conn.held = Some(held);
        Ok(conn)
    }

    async fn acquire_cached(&self, cache: &Arc<ConnectionCache>) -> Result<PooledConn, sqlx::Error> {
        let (slot, conn) = cache.take().await?;
        let conn = match conn {
            Some(conn) => conn,
            None => self.shared().pool.acquire().await?,
        };
        Ok(self.pooled(conn, Some(slot)))
    }

    fn pooled(&self, conn: PoolConnection<Postgres>, slot: Option<CacheSlot>) -> PooledConn {
        PooledConn {
            conn: Some(conn),
            slot,
            is_reusable: false,
            skips_nesting_check: self.is_mutant(Mutant::SkipsNestingCheck),
            held: None,
        }
    }

    /// Runs a call in its own task, which ends even if the caller is dropped.
    pub(crate) async fn spawn_detached<T, F>(operation: &'static str, call: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        tokio::spawn(call).await.unwrap_or_else(|_| Err(task_ended(operation)))
    }

    /// Runs statements in their own transaction and task.
    pub(crate) async fn in_transaction<T, F>(&self, operation: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
    {
        let store = self.clone();
        let _held = self.shared().options.clock.hold();
        Self::spawn_detached(operation, async move {
            let mut conn = store.acquire(operation).await?;
            let mut tx =
                conn.begin_with(store.shared().options.begin()).await.map_err(|error| begin_error(operation, error))?;
            let answer = work(&mut tx).await;
            let is_committed = match &answer {
                Ok(_) => match store.commit_fault.take(operation) {
                    Some(lost) => {
                        lost.end(tx).await?;
                        conn.release();
                        return Err(lost.error(operation));
                    }
                    None => tx.commit().await.map_err(|error| commit_error(operation, error)),
                },
                Err(_) => tx.rollback().await.map_err(|error| store_error(operation, error)),
            };
            match (answer, is_committed) {
                (Ok(answer), Ok(())) => {
                    conn.release();
                    Ok(answer)
                }
                (Ok(_), Err(error)) => Err(error),
                (Err(error), rolled_back) => {
                    if rolled_back.is_ok() {
                        conn.release();
                    }
                    Err(error)
                }
            }
        })
        .await
    }

    /// Whether writes of a step outside of its transaction can be refused. A session of the application's pool is left
    /// as it is, and behind PgBouncer the next transaction may belong to another client.
    pub(crate) fn blocks_writes_outside(&self) -> bool {
        let shared = self.shared();
        let is_own = shared.owns_pool && !shared.options.pgbouncer && !shared.options.read_only;
        is_own && !self.is_mutant(Mutant::AllowsWritesAfterRollback)
    }

    /// Whether a test opened this mutant of the store.
    pub(crate) fn is_mutant(&self, mutant: Mutant) -> bool {
        self.shared().options.broken_rule.is(mutant)
    }

    /// A statement of the store, for its schema.
    pub(crate) fn sql(&self, template: &str) -> Sql {
        Sql(self.shared().statements.of(template))
    }
}

/// A statement whose only variable part is the schema's name, which was validated.
#[derive(Clone)]
pub(crate) struct Sql(Arc<str>);

impl sqlx::SqlSafeStr for Sql {
    fn into_sql_str(self) -> sqlx::SqlStr {
        AssertSqlSafe(self.0).into_sql_str()
    }
}
