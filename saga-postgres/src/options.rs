use std::fmt;
use std::str::FromStr as _;
use std::time::Duration;

use saga_core::store::{StoreError, StoreErrorKind};
use sqlx::postgres::PgConnectOptions;

use crate::fault_injection::BrokenRule;
use crate::test_clock::TestClock;

/// The longest name of a schema: PostgreSQL truncates longer names.
const SCHEMA_BYTES_MAX: usize = 63;

/// How messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Relay {
    /// The runtime's relay: a message waits in the outbox until the transport has confirmed it.
    #[default]
    Runtime,
    /// Change data capture, such as Debezium's connector: a message is inserted into the outbox and deleted again in one
    /// transaction, the connector reads it from the server's log, and the runtime has no relay.
    Cdc,
}

/// How a PostgreSQL store is opened.
///
/// ```
/// use saga_postgres::PostgresOptions;
///
/// let options = PostgresOptions::from_url("postgres://orders@db.example.com/shop")?.schema("orders_saga")?.connections_max(16);
/// # Ok::<(), saga_core::store::StoreError>(())
/// ```
#[derive(Clone)]
pub struct PostgresOptions {
    pub(crate) connect: PgConnectOptions,
    pub(crate) schema: String,
    pub(crate) connections_max: u32,
    pub(crate) acquire_timeout: Duration,
    pub(crate) batch_lock_timeout: Duration,
    pub(crate) batch_max: usize,
    pub(crate) pgbouncer: bool,
    pub(crate) hints: bool,
    pub(crate) relay: Relay,
    pub(crate) read_only: bool,
    pub(crate) migration_tries: u32,
    pub(crate) broken_rule: BrokenRule,
    pub(crate) clock: TestClock,
}

impl PostgresOptions {
    /// The server, database and user of a URL: `postgres://user:password@host:port/database`.
    ///
    /// # Errors
    /// When the text is no such URL. The error does not repeat the text, since it may contain a password.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
        let parsed = is_url.then(|| PgConnectOptions::from_str(url).ok()).flatten();
        parsed.map(Self::new).ok_or_else(|| {
            let detail = "the address is not a PostgreSQL URL; write postgres://user:password@host:port/database";
            StoreError::new(StoreErrorKind::NotAStore, "open", detail)
        })
    }

    /// The server, database and user of these connect options.
    pub fn new(connect: PgConnectOptions) -> Self {
        Self {
            connect,
            schema: "saga".to_owned(),
            connections_max: 10,
            acquire_timeout: Duration::from_secs(10),
            batch_lock_timeout: Duration::from_millis(50),
            batch_max: 32,
            pgbouncer: false,
            hints: true,
            relay: Relay::Runtime,
            read_only: false,
            migration_tries: 40,
            broken_rule: BrokenRule::NONE,
            clock: TestClock::NONE,
        }
    }

    /// The schema of the runtime's own tables. The default is `saga`. It is created if it does not exist.
    ///
    /// # Errors
    /// When the name is not 1 to 63 ASCII letters, digits and `_`, or begins with a digit or `pg_`.
    pub fn schema(mut self, name: &str) -> Result<Self, StoreError> {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_name = (1..=SCHEMA_BYTES_MAX).contains(&name.len())
            && is_plain
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && !name.to_ascii_lowercase().starts_with("pg_");
        if !is_name {
            let detail = format!(
                "{name:?} cannot be the name of the schema; use 1 to {SCHEMA_BYTES_MAX} ASCII letters, digits and `_`, \
                 not beginning with a digit or `pg_`"
            );
            return Err(StoreError::new(StoreErrorKind::Misuse, "open", detail));
        }
        name.clone_into(&mut self.schema);
        Ok(self)
    }

    /// The most connections of the store, which also limits the steps that run at once. The default is 10; one is
    /// enough. A pool that the application gives has its own size.
    #[must_use]
    pub fn connections_max(mut self, connections: u32) -> Self {
        self.connections_max = connections.max(1);
        self
    }

    /// How long a call waits for a connection. The default is 10 seconds.
    #[must_use]
    pub fn acquire_timeout(mut self, timeout: Duration) -> Self {
        self.acquire_timeout = timeout;
        self
    }

    /// How long a commit that several calls share waits for a lock. The default is 50 ms. Such commits are a
    /// transaction of several steps, which then releases its locks and runs again in halves, and a commit that starts
    /// sagas or records outcomes, in which the call that waits is tried again by itself. A transaction also waits as long
    /// for another one that has what its steps lock.
    #[must_use]
    pub fn batch_lock_timeout(mut self, timeout: Duration) -> Self {
        self.batch_lock_timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// How often a migration is tried while another session, such as a dump, holds a table. The default is 40 times,
    /// half a second each and a second apart. Then opening the store fails.
    #[must_use]
    pub fn migration_tries(mut self, tries: u32) -> Self {
        self.migration_tries = tries.max(1);
        self
    }

    /// The most steps in one transaction, at most 60. The default is 32.
    #[must_use]
    pub fn batch_max(mut self, steps: usize) -> Self {
        // PostgreSQL keeps 64 savepoints of a session in memory, and looks up further ones on the disk.
        self.batch_max = steps.clamp(1, 60);
        self
    }

    /// The server is a PgBouncer in transaction mode: statements are not prepared under a name, and nothing is set at
    /// the start of a session. There are no hints between processes then ([`without_hints`](Self::without_hints)),
    /// because a session that listens cannot be shared.
    ///
    /// The same goes for the statements of steps: their queries need `.persistent(false)`, unless PgBouncer is set to
    /// follow prepared statements (`max_prepared_statements`, since its version 1.21).
    #[must_use]
    pub fn pgbouncer(mut self) -> Self {
        self.pgbouncer = true;
        self
    }

    /// Switches the hints between processes off: each process then finds new work by polling. With hints, a process
    /// that runs sagas has one connection more than its pool. It notifies other processes by `NOTIFY` on the channel
    /// with the schema's name, and listens there. Behind PgBouncer there are no hints.
    #[must_use]
    pub fn without_hints(mut self) -> Self {
        self.hints = false;
        self
    }

    /// How messages are sent. The default is the runtime's relay. All processes on the schema must have the same
    /// setting. Before [`Relay::Cdc`] is set, the relay must have emptied the outbox, because no process would send
    /// those messages later.
    #[must_use]
    pub fn relay(mut self, relay: Relay) -> Self {
        self.relay = relay;
        self
    }

    /// Opens the store for reading only, also on a standby: nothing is created, migrated or written, and calls that
    /// write fail.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// The store's clock is that of an environment, such as `saga_testkit::VirtualTime`, instead of the server's. The schema must be a
    /// new one: it gets a clock of its own, and a store without a test's clock refuses it from then on.
    ///
    /// Tables of the application that use `now()` keep the time of the server.
    #[cfg(feature = "test-clock")]
    #[must_use]
    pub fn test_clock(mut self, environment: std::sync::Arc<dyn saga_core::env::Environment>) -> Self {
        self.clock = TestClock::of(environment);
        self
    }

    /// Opens a mutant of the store.
    #[cfg(feature = "fault-injection")]
    #[doc(hidden)]
    #[must_use]
    pub fn mutant(mut self, mutant: crate::fault_injection::Mutant) -> Self {
        self.broken_rule = BrokenRule::of(mutant);
        self
    }

    /// The connect options of this store.
    pub(crate) fn connection(&self) -> PgConnectOptions {
        let connect = self.connect.clone();
        if self.pgbouncer {
            connect.statement_cache_capacity(0).extra_float_digits(None)
        } else if self.read_only {
            connect.options([("default_transaction_read_only", "on")])
        } else {
            connect
        }
    }

    /// How a transaction begins. A read-only store sets it in each, since a pool of the application may make its
    /// connections.
    pub(crate) fn begin(&self) -> &'static str {
        if self.read_only {
            "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"
        } else {
            "BEGIN ISOLATION LEVEL READ COMMITTED"
        }
    }

    /// A statement for the schema and its clock.
    pub(crate) fn render(&self, template: String) -> String {
        self.clock.rewrite(template).replace("{schema}", &self.quoted_schema())
    }

    /// The schema's name, quoted.
    pub(crate) fn quoted_schema(&self) -> String {
        // `schema` has checked that the name has no quote.
        format!("\"{}\"", self.schema)
    }
}

/// The password is not shown.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("host", &self.connect.get_host())
            .field("port", &self.connect.get_port())
            .field("database", &self.connect.get_database())
            .field("user", &self.connect.get_username())
            .field("schema", &self.schema)
            .field("connections_max", &self.connections_max)
            .field("pgbouncer", &self.pgbouncer)
            .finish_non_exhaustive()
    }
}
