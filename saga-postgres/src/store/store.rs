use std::fmt;
use std::sync::Arc;

use saga_core::store::StoreError;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, PgConnection, PgPool};

use crate::connections::first_statement::{prepare_first_statement, set_session};
use crate::connections::pool::{end_stale_transaction, own_pool_options};
use crate::connections::pooler::refuse_unknown_pooler;
use crate::connections::server::{Server, prepare};
use crate::connections::timeline::note_timeline;
use crate::error::open_error;
use crate::fault_injection::CommitFault;
use crate::options::PostgresOptions;
use crate::rows::definition_numbers::DefinitionNumbers;
use crate::shared::Shared;
use crate::statistics::Statistics;

/// A store in a PostgreSQL database.
///
/// A clone is another handle on the same store.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
    pub(crate) commit_fault: CommitFault,
}

impl PostgresStore {
    /// Opens the database that a URL names, `postgres://user:password@host:port/database`, with the default options. Its
    /// schema is created, or brought to this version.
    ///
    /// # Errors
    /// Those of [`PostgresOptions::from_url`] and of [`connect_with`](Self::connect_with).
    ///
    /// # Cancel safety
    /// That of [`connect_with`](Self::connect_with).
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example() -> Result<(), saga_core::store::StoreError> {
    /// use saga_postgres::PostgresStore;
    ///
    /// let store = PostgresStore::connect("postgres://orders@localhost/shop").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(PostgresOptions::from_url(url)?).await
    }

    /// Opens the database that a URL names for reading only: nothing is created, migrated or written. It needs only the
    /// rights to read, and works on a standby.
    ///
    /// # Errors
    /// Those of [`connect_with`](Self::connect_with); and when there is no schema of the runtime, or one of another version.
    ///
    /// # Cancel safety
    /// Dropped, nothing stays open.
    pub async fn read_only(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(PostgresOptions::from_url(url)?.read_only()).await
    }

    /// Opens a database. Its schema is created, or brought to this version; several processes that start at once take turns.
    ///
    /// # Errors
    /// One sentence that names the server, the user and the database, and never a password: when the server cannot be
    /// reached or refuses the user, when the database does not exist, when rights are missing, when the server is a
    /// standby or too old, and when the schema is of a newer version or partly migrated. A pooler in transaction mode
    /// is refused unless [`PostgresOptions::pgbouncer`] is set.
    ///
    /// # Cancel safety
    /// Dropped, the schema is migrated whole or not at all, and no connection stays open.
    pub async fn connect_with(options: PostgresOptions) -> Result<Self, StoreError> {
        let failed = |error| open_error(&options.connect, error);
        // One connection outside the pool: a pool would wait for an unreachable server without an error.
        let connection = options.connection();
        let opening = PgConnection::connect_with(&connection);
        let mut conn = match tokio::time::timeout(options.acquire_timeout, opening).await {
            Ok(opened) => opened.map_err(failed)?,
            Err(_) => return Err(failed(sqlx::Error::PoolTimedOut)),
        };
        refuse_unknown_pooler(&mut conn, &options).await?;
        let server = prepare(&mut conn, &options).await?;
        conn.close().await.map_err(failed)?;
        let definitions = Arc::<DefinitionNumbers>::default();
        let numbered = Arc::clone(&definitions);
        let keeps_statements = !options.pgbouncer;
        let pool = own_pool_options()
            .max_connections(options.connections_max)
            .acquire_timeout(options.acquire_timeout)
            .after_connect(move |conn, _| {
                let numbered = Arc::clone(&numbered);
                Box::pin(async move {
                    note_timeline(conn, &numbered).await?;
                    if !keeps_statements {
                        return Ok(());
                    }
                    set_session(conn).await?;
                    prepare_first_statement(conn).await
                })
            })
            .connect_lazy_with(options.connection());
        Ok(Self::new(options, pool, server, Some(definitions)))
    }

    /// Works on the application's own pool. The options that concern connections are ignored.
    ///
    /// Build the pool with [`pool_options`](Self::pool_options), so that a dropped `begin` of the application does no
    /// harm.
    ///
    /// # Errors
    /// Those of [`connect_with`](Self::connect_with).
    ///
    /// # Cancel safety
    /// That of [`connect_with`](Self::connect_with).
    pub async fn from_pool(pool: PgPool, mut options: PostgresOptions) -> Result<Self, StoreError> {
        options.connect = (*pool.connect_options()).clone();
        let mut conn = pool.acquire().await.map_err(|error| open_error(&options.connect, error))?;
        conn.close_on_drop();
        let server = prepare(&mut conn, &options).await?;
        drop(conn);
        Ok(Self::new(options, pool, server, None))
    }

    /// Options for a pool that this store and the application share: a connection that is returned inside a
    /// transaction, because a future was dropped during `begin`, is rolled back before it is used again.
    pub fn pool_options() -> PgPoolOptions {
        own_pool_options().after_release(|conn, _| Box::pin(end_stale_transaction(conn)))
    }

    /// Closes the connections, once the calls that use them have ended. Later calls fail.
    ///
    /// # Cancel safety
    /// The store is closed even if this is dropped; only the notice that its connections are closed is lost.
    pub async fn close(&self) {
        self.shared.hints.close().await;
        if let Some(cache) = &self.shared.cache {
            cache.close();
        }
        if self.shared.owns_pool {
            self.shared.pool.close().await;
        }
    }

    /// Counters of the store since it was opened.
    pub fn statistics(&self) -> Statistics {
        let cached = self.shared.cache.as_ref().map_or(0, |cache| cache.len());
        Statistics::read(&self.shared.statistics, &self.shared.pool, cached)
    }

    /// The schema of the runtime's own tables.
    pub fn schema(&self) -> &str {
        &self.shared.options.schema
    }

    /// A handle on the same store whose next commit is answered as unknown. `is_committed` says whether it took place.
    #[cfg(feature = "fault-injection")]
    #[doc(hidden)]
    #[must_use]
    pub fn with_lost_commit(&self, is_committed: bool) -> Self {
        Self { shared: Arc::clone(&self.shared), commit_fault: CommitFault::lose_next(is_committed) }
    }

    /// Calls a function with the connection that the next call would get.
    ///
    /// # Errors
    /// When no connection is free within the acquire timeout.
    ///
    /// # Cancel safety
    /// Dropped, the connection is closed.
    #[cfg(feature = "fault-injection")]
    #[doc(hidden)]
    pub async fn on_next_connection<T>(&self, call: impl AsyncFnOnce(&mut PgConnection) -> T) -> Result<T, StoreError> {
        let mut conn = self.acquire("on_next_connection").await?;
        let answer = call(&mut conn).await;
        conn.release();
        Ok(answer)
    }

    /// For tests: the pool.
    #[doc(hidden)]
    pub fn pool(&self) -> &PgPool {
        if let Some(cache) = &self.shared.cache {
            cache.clear();
        }
        &self.shared.pool
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn new(
        options: PostgresOptions,
        pool: PgPool,
        server: Server,
        definitions: Option<Arc<DefinitionNumbers>>,
    ) -> Self {
        let shared = Shared::new(options, pool, server, definitions);
        Self { shared: Arc::new(shared), commit_fault: CommitFault::NONE }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("options", &self.shared.options).finish_non_exhaustive()
    }
}
