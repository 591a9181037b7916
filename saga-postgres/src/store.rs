use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::store::{
    Capabilities, Claim, Durability, Store, StoreError, StoreErrorKind, TransactError, TransactionBody,
};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, Executor as _, PgConnection, PgPool, Row as _};

use crate::connection;
use crate::connection_cache::ConnectionCache;
use crate::definitions::Definitions;
use crate::error::{is_conflict, open_error, task_ended};
use crate::fault_injection::{BrokenRule, CommitFault, Mutant};
use crate::hints::HintConnection;
use crate::ids::IdCounter;
use crate::options::{PostgresOptions, Relay};
use crate::pooler::refuse_unknown_pooler;
use crate::schema::{self, Failure};
use crate::statistics::{Counters, Statistics};
use crate::{timeline, transaction};

/// The oldest server whose functions this store uses.
const SERVER_VERSION_MIN: i32 = 140_000;
/// A connection that lay idle for so long is tried before it is used.
const IDLE_UNCHECKED_MAX: Duration = Duration::from_secs(1);

/// A store in a PostgreSQL database.
///
/// A clone is another handle on the same store.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
    pub(crate) commit_fault: CommitFault,
}

/// What all handles share.
pub(crate) struct Shared {
    pub(crate) options: PostgresOptions,
    pub(crate) pool: PgPool,
    /// Whether nobody but this store uses the pool, so that it knows the state of each connection.
    pub(crate) owns_pool: bool,
    /// What lies idle of a pool that only this store uses.
    pub(crate) cache: Option<Arc<ConnectionCache>>,
    pub(crate) durability: Durability,
    /// Whether the server can be told to look whether its client is still there while a statement runs.
    pub(crate) checks_clients: bool,
    pub(crate) ids: IdCounter,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) statements: Statements,
    pub(crate) statistics: Counters,
    pub(crate) hints: HintConnection,
    /// The name of the savepoint in front of a handler. It is another one in each process, so that no step takes it.
    pub(crate) savepoint: String,
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

    /// Opens the database that a URL names to look only: nothing is created, migrated or written. It works with rights that
    /// allow reading and nothing else, and on a standby.
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
    /// reached or does not let the user in, when there is no such database, when rights are missing, when the server is a
    /// standby or too old, and when the schema is of a newer version or half migrated. A pooler in transaction mode is
    /// refused unless [`PostgresOptions::pgbouncer`] is set.
    ///
    /// # Cancel safety
    /// Dropped, the schema is migrated whole or not at all, and nothing stays open.
    pub async fn connect_with(options: PostgresOptions) -> Result<Self, StoreError> {
        let failed = |error| open_error(&options.connect, error);
        // One connection outside the pool: a pool would wait for a server that is not there, and not say why.
        let connection = options.connection();
        let opening = PgConnection::connect_with(&connection);
        let mut conn = match tokio::time::timeout(options.acquire_timeout, opening).await {
            Ok(opened) => opened.map_err(failed)?,
            Err(_) => return Err(failed(sqlx::Error::PoolTimedOut)),
        };
        refuse_unknown_pooler(&mut conn, &options).await?;
        let server = prepare(&mut conn, &options).await?;
        conn.close().await.map_err(failed)?;
        let definitions = Arc::<Definitions>::default();
        let numbered = Arc::clone(&definitions);
        let pool = own_pool_options()
            .max_connections(options.connections_max)
            .acquire_timeout(options.acquire_timeout)
            .after_connect(move |conn, _| {
                let numbered = Arc::clone(&numbered);
                Box::pin(async move { timeline::note_timeline(conn, &numbered).await })
            })
            .connect_lazy_with(options.connection());
        Ok(Self::new(options, pool, server, Some(definitions)))
    }

    /// Works on the application's own pool. Of the options those that concern connections are ignored.
    ///
    /// Build the pool with [`pool_options`](Self::pool_options), so that a `begin` of the application that was dropped
    /// half way does no harm.
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

    /// Options for a pool that this store and an application share: a connection that is given back inside a transaction,
    /// as it happens when a future is dropped in the middle of `begin`, is rolled back before anybody else gets it.
    pub fn pool_options() -> PgPoolOptions {
        own_pool_options().after_release(|conn, _| Box::pin(connection::end_stale_transaction(conn)))
    }

    /// Closes the connections, once the calls that use them have ended. Later calls fail.
    ///
    /// # Cancel safety
    /// The store is closed even if this is dropped; then nobody knows when its connections are.
    pub async fn close(&self) {
        self.shared.hints.close().await;
        if let Some(kept) = &self.shared.cache {
            kept.close();
        }
        if self.shared.owns_pool {
            self.shared.pool.close().await;
        }
    }

    /// What the store did since it was opened.
    pub fn statistics(&self) -> Statistics {
        let kept = self.shared.cache.as_ref().map_or(0, |kept| kept.len());
        self.shared.statistics.read(&self.shared.pool, kept)
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
        if let Some(kept) = &self.shared.cache {
            kept.clear();
        }
        &self.shared.pool
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// `definitions`: what each connection of a pool looks after that only this store uses.
    fn new(options: PostgresOptions, pool: PgPool, server: Server, definitions: Option<Arc<Definitions>>) -> Self {
        let owns_pool = definitions.is_some();
        let definitions = definitions.unwrap_or_default();
        let statements = Statements {
            schema: options.quoted_schema(),
            broken_rule: options.broken_rule,
            by_template: RwLock::default(),
        };
        let savepoint = handler_savepoint(&options);
        let shared = Shared {
            hints: HintConnection::new(&options),
            cache: owns_pool.then(|| Arc::new(ConnectionCache::new(options.connections_max, IDLE_UNCHECKED_MAX))),
            options,
            pool,
            owns_pool,
            durability: server.durability,
            checks_clients: server.checks_clients,
            ids: IdCounter::default(),
            definitions,
            statements,
            statistics: Counters::default(),
            savepoint,
        };
        Self { shared: Arc::new(shared), commit_fault: CommitFault::NONE }
    }
}

#[async_trait]
impl Store for PostgresStore {
    type Conn = PgConnection;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "postgres",
            shared: true,
            persistent: true,
            durability: self.shared.durability.clone(),
            starts_in_transactions: true,
            relayed: self.shared.options.relay == Relay::Runtime,
            batch_max: self.shared.options.batch_max,
        }
    }

    fn is_conflict(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        error.downcast_ref::<sqlx::Error>().is_some_and(is_conflict)
    }

    /// It runs in a task of its own, which ends whatever becomes of the caller.
    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<PgConnection>>,
    ) -> Result<(), TransactError> {
        let store = self.clone();
        let mut body = body;
        let task = tokio::spawn(async move { transaction::transact(&store, &claims, &mut body).await });
        task.await.unwrap_or_else(|_| Err(task_ended("transact").into()))
    }
}

/// The statements of a store, each made once for its schema.
pub(crate) struct Statements {
    schema: String,
    broken_rule: BrokenRule,
    by_template: RwLock<HashMap<String, Arc<str>>>,
}

impl Statements {
    pub(crate) fn of(&self, template: &str) -> Arc<str> {
        if let Some(statement) = self.by_template.read().unwrap_or_else(PoisonError::into_inner).get(template) {
            return Arc::clone(statement);
        }
        let statement = self.broken_rule.rewrite(template.to_owned());
        let statement: Arc<str> = statement.replace("{schema}", &self.schema).into();
        self.by_template
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(template.to_owned(), Arc::clone(&statement));
        statement
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

/// A name that nobody guesses. Not one for each transaction: statistics by statement would have a line for each.
fn handler_savepoint(options: &PostgresOptions) -> String {
    if options.broken_rule.is(Mutant::FixedSavepointName) {
        return "saga_handler".to_owned();
    }
    // Its keys are random.
    format!("saga_handler_{:016x}", RandomState::new().hash_one(0))
}

/// Options for a pool that only this store uses: it closes what may be in the middle of a transaction.
fn own_pool_options() -> PgPoolOptions {
    PgPoolOptions::new().test_before_acquire(false).before_acquire(|conn, known| {
        let is_trusted = known.idle_for < IDLE_UNCHECKED_MAX;
        Box::pin(async move {
            if !is_trusted {
                conn.ping().await?;
            }
            Ok(true)
        })
    })
}

/// What there is to know of a server.
struct Server {
    durability: Durability,
    checks_clients: bool,
}

/// Looks at the server, and brings the schema to this version; a read-only store asks for that version.
async fn prepare(conn: &mut PgConnection, options: &PostgresOptions) -> Result<Server, StoreError> {
    let failed = |error| open_error(&options.connect, error);
    let settings = "SELECT current_setting('server_version_num')::integer, current_setting('fsync'), \
         current_setting('synchronous_commit'), pg_is_in_recovery()";
    let row = conn.fetch_one(sqlx::raw_sql(settings)).await.map_err(failed)?;
    let read = || Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?));
    let (version, fsync, synchronous, is_standby): (i32, String, String, bool) = read().map_err(failed)?;
    if version < SERVER_VERSION_MIN {
        let detail = format!(
            "the server is PostgreSQL {}; version {} or a later one is needed",
            version / 10_000,
            SERVER_VERSION_MIN / 10_000
        );
        return Err(StoreError::new(StoreErrorKind::NotAStore, "open", detail));
    }
    if is_standby && !options.read_only {
        let detail = "the server is a standby, which cannot be written; name the primary \
             (with several hosts: target_session_attrs=read-write)";
        return Err(StoreError::new(StoreErrorKind::NotWritable, "open", detail));
    }
    let at_hand =
        if options.read_only { schema::require(conn, options).await } else { schema::migrate(conn, options).await };
    at_hand.map_err(|failure| match failure {
        Failure::Sql(error) => failed(error),
        Failure::Refused(error) => error,
    })?;
    let durability = match (&*fsync, &*synchronous) {
        ("on", "off") => Durability::Process("synchronous_commit=off".to_owned()),
        ("on", _) => Durability::Full,
        _ => Durability::Process("fsync=off".to_owned()),
    };
    // Not every system that a server runs on can do it.
    let checks_clients = conn.execute("SET client_connection_check_interval = 1000").await.is_ok();
    Ok(Server { durability, checks_clients })
}
