//! Lending connections, and making sure that none comes back from the middle of something.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use saga_core::env::BoxFuture;
use saga_core::store::StoreError;
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Postgres};

use crate::error::{begin_error, commit_error, ended, is_answer_of_server, store_error};
use crate::fault_injection::Mutant;
use crate::kept::{Kept, Place};
use crate::store::PostgresStore;

/// A connection of the pool. One that is dropped before its call came to its end is closed: it may be in the middle of a
/// transaction that nobody knows of, and the next borrower would write into that.
pub(crate) struct Lent {
    /// It is there until this is dropped.
    conn: Option<PoolConnection<Postgres>>,
    place: Option<Place>,
    is_sound: bool,
    /// Only a mutant does not look whether a transaction is still open.
    skips_nesting_check: bool,
}

impl Lent {
    /// The call came to its end, and the connection is outside any transaction. One that is inside all the same, since a
    /// step leaked a nested transaction, is closed: what its next borrower writes would be rolled back one day.
    pub(crate) fn done(mut self) {
        self.is_sound = self.skips_nesting_check || !self.is_in_transaction();
    }

    /// The statement came to its end, well or not. A connection that failed in another way is closed.
    pub(crate) fn done_if_sound<T>(self, answer: &Result<T, StoreError>) {
        let is_sound = answer.as_ref().map_or_else(is_answer_of_server, |_| true);
        if is_sound {
            self.done();
        }
    }
}

impl Deref for Lent {
    type Target = PgConnection;

    #[expect(clippy::expect_used, reason = "it is taken out by the drop alone")]
    fn deref(&self) -> &PgConnection {
        self.conn.as_ref().expect("a connection")
    }
}

impl DerefMut for Lent {
    #[expect(clippy::expect_used, reason = "it is taken out by the drop alone")]
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.conn.as_mut().expect("a connection")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        match (self.conn.take(), self.place.take()) {
            (Some(mut conn), _) if !self.is_sound => conn.close_on_drop(),
            (Some(conn), Some(place)) => place.give_back(conn),
            _ => {}
        }
    }
}

impl PostgresStore {
    /// A connection of the pool. Nobody asks for one who holds one.
    pub(crate) async fn lend(&self, operation: &'static str) -> Result<Lent, StoreError> {
        let shared = self.shared();
        let lent = match &shared.kept {
            Some(kept) => {
                let lent = tokio::time::timeout(shared.options.acquire_timeout, self.lend_kept(kept)).await;
                lent.unwrap_or(Err(sqlx::Error::PoolTimedOut))
            }
            // How long is said by the application's pool.
            None => shared.pool.acquire().await.map(|conn| self.lent(conn, None)),
        };
        lent.map_err(|error| store_error(operation, error))
    }

    async fn lend_kept(&self, kept: &Arc<Kept>) -> Result<Lent, sqlx::Error> {
        let (place, conn) = kept.take().await?;
        let conn = match conn {
            Some(conn) => conn,
            None => self.shared().pool.acquire().await?,
        };
        Ok(self.lent(conn, Some(place)))
    }

    fn lent(&self, conn: PoolConnection<Postgres>, place: Option<Place>) -> Lent {
        Lent {
            conn: Some(conn),
            place,
            is_sound: false,
            skips_nesting_check: self.is_mutant(Mutant::SkipsNestingCheck),
        }
    }

    /// Runs a call in a task of its own, which ends whatever becomes of the caller.
    pub(crate) async fn own<T, F>(operation: &'static str, call: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        tokio::spawn(call).await.unwrap_or_else(|_| Err(ended(operation)))
    }

    /// Runs statements in a transaction of their own, in a task of their own.
    pub(crate) async fn in_transaction<T, F>(&self, operation: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
    {
        let store = self.clone();
        Self::own(operation, async move {
            let mut conn = store.lend(operation).await?;
            let mut tx =
                conn.begin_with(store.shared().options.begin()).await.map_err(|error| begin_error(operation, error))?;
            let answer = work(&mut tx).await;
            let is_committed = match &answer {
                Ok(_) => match store.commit_fault.take(operation) {
                    Some(lost) => {
                        lost.end(tx).await?;
                        conn.done();
                        return Err(lost.error(operation));
                    }
                    None => tx.commit().await.map_err(|error| commit_error(operation, error)),
                },
                Err(_) => tx.rollback().await.map_err(|error| store_error(operation, error)),
            };
            match (answer, is_committed) {
                (Ok(answer), Ok(())) => {
                    conn.done();
                    Ok(answer)
                }
                (Ok(_), Err(error)) => Err(error),
                (Err(error), rolled_back) => {
                    if rolled_back.is_ok() {
                        conn.done();
                    }
                    Err(error)
                }
            }
        })
        .await
    }

    /// Whether what a step writes outside of its transaction can be refused. A session of the application's is left as it
    /// is, and behind PgBouncer the next transaction may be somebody else's.
    pub(crate) fn guards_outside(&self) -> bool {
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

/// A statement whose only foreign part is the schema's name, which was validated.
#[derive(Clone)]
pub(crate) struct Sql(Arc<str>);

impl sqlx::SqlSafeStr for Sql {
    fn into_sql_str(self) -> sqlx::SqlStr {
        AssertSqlSafe(self.0).into_sql_str()
    }
}

/// Ends a transaction that nobody knows of. Without one, nothing of this is worth a warning to the server.
pub(crate) async fn leave_stale_transaction(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    if conn.execute("BEGIN; ROLLBACK").await.is_err() {
        // A transaction that failed takes nothing but its end.
        conn.execute("ROLLBACK").await?;
    }
    Ok(true)
}
