use std::time::Duration;

use async_trait::async_trait;
use saga_sql::SqlConn;

use super::database::Database;
#[cfg(feature = "redis")]
use super::epochs::{CreateEpochs, CurrentEpoch, RaiseEpoch};
#[cfg(feature = "postgres")]
use super::group::Group;
#[cfg(feature = "redis")]
use super::look::{Found, Question, SharedReads};
use super::perform::{Perform, SWEEP, SetCapacity, Swept, is_for_lack_of_units};
use super::schema::create_tables;
use super::task::Task;
#[cfg(feature = "redis")]
use super::tidying::KeysAfter;
use super::tidying::{Expire, Find, FindResource, Ping, Prune};
use super::transactions::Transactions;
use super::work::{Work, WorkError};
use crate::ReservationsError;
use crate::book::{Operation, Reservation, ReservationKey, Resource, ResourceName};
use crate::contract::{Reservations, ReservationsStore};

/// The connections of a pool on PostgreSQL.
#[cfg(feature = "postgres")]
const CONNECTIONS_MAX: u32 = 16;
/// How long an operation waits for a connection of the pool.
#[cfg(feature = "postgres")]
const CONNECTION_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long PostgreSQL lets a statement wait for a resource, and a process that was stopped keep one locked.
#[cfg(feature = "postgres")]
const LOCKED_MAX: [(&str, &str); 2] = [("lock_timeout", "5s"), ("idle_in_transaction_session_timeout", "5s")];

/// Reservations in SQLite or PostgreSQL, in the tables `reservations` and `reservation_resources`.
///
/// One process works on a SQLite file; any number of them on a PostgreSQL database. The clock is the database's. Operations
/// that are asked for at the same time share transactions.
///
/// # Examples
/// ```
/// use saga_reservations::{ReservationsClient, Reserve, SqlReservations};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("reservations.db");
/// let client = ReservationsClient::new(SqlReservations::open_sqlite(&path).await?);
/// client.set_capacity("seat/LH-400", 2).await?;
/// let held = client.reserve(Reserve::of("seat/LH-400", 2).key("order-7").ttl_mins(15)).await?;
/// held.confirm().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SqlReservations {
    transactions: Transactions,
    #[cfg(feature = "redis")]
    reads: SharedReads,
    /// A store on SQLite shares commits by itself.
    #[cfg(feature = "postgres")]
    group: Option<Group>,
}

impl SqlReservations {
    /// Opens or creates a SQLite file.
    ///
    /// # Errors
    /// When the file cannot be opened, another process works on it, or it is no database.
    ///
    /// # Cancel safety
    /// Dropped, the file may have been created.
    #[cfg(feature = "sqlite")]
    pub async fn open_sqlite(path: impl AsRef<std::path::Path>) -> Result<Self, ReservationsError> {
        const OPERATION: &str = "open the SQLite file";
        let store = saga_sqlite::SqliteStore::open(path.as_ref()).await;
        Self::on_sqlite(store.map_err(|error| ReservationsError::unavailable(OPERATION, error))?).await
    }

    /// Reservations in the file of a store that sagas have too.
    ///
    /// # Errors
    /// When the tables cannot be created.
    ///
    /// # Cancel safety
    /// Dropped, the tables may have been created.
    #[cfg(feature = "sqlite")]
    pub async fn on_sqlite(store: saga_sqlite::SqliteStore) -> Result<Self, ReservationsError> {
        Self::on(Database::Sqlite(store)).await
    }

    /// Connects to a PostgreSQL database, such as `postgres://localhost/shop`.
    ///
    /// # Errors
    /// When the address is wrong, the server does not answer, or the tables cannot be created.
    ///
    /// # Cancel safety
    /// Dropped, the tables may have been created.
    #[cfg(feature = "postgres")]
    pub async fn connect_postgres(url: &str) -> Result<Self, ReservationsError> {
        let failed = |error| ReservationsError::unavailable("connect to PostgreSQL", error);
        let server: sqlx::postgres::PgConnectOptions = url.parse().map_err(failed)?;
        let pool = sqlx::postgres::PgPoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .acquire_timeout(CONNECTION_WAIT_MAX)
            .connect_with(server.options(LOCKED_MAX));
        Self::on_postgres(pool.await.map_err(failed)?).await
    }

    /// Reservations in the database of a pool, whose settings stay as they are. It should limit how long a connection may be
    /// idle in a transaction: a process that was stopped keeps the resources locked that it is about.
    ///
    /// Its connections keep prepared statements. Behind PgBouncer in transaction mode they must not: there a pool of sqlx needs
    /// `statement_cache_capacity(0)`.
    ///
    /// # Errors
    /// When the tables cannot be created.
    ///
    /// # Cancel safety
    /// Dropped, the tables may have been created.
    #[cfg(feature = "postgres")]
    pub async fn on_postgres(pool: sqlx::PgPool) -> Result<Self, ReservationsError> {
        let mut reservations = Self::on(Database::on_pool(pool)).await?;
        reservations.group = Some(Group::on(reservations.transactions.clone()));
        Ok(reservations)
    }

    /// The clock of the database and this many microseconds are the time, from now on.
    #[cfg(feature = "test-clock")]
    pub fn clock_shift(&self) -> std::sync::Arc<std::sync::atomic::AtomicI64> {
        std::sync::Arc::clone(self.transactions.clock_shift())
    }

    async fn on(database: Database) -> Result<Self, ReservationsError> {
        let reservations = Self {
            transactions: Transactions::on(database),
            #[cfg(feature = "redis")]
            reads: SharedReads::default(),
            #[cfg(feature = "postgres")]
            group: None,
        };
        reservations.transact(|| CreateTables).await?;
        Ok(reservations)
    }

    async fn carry_out(&self, task: Task) -> Result<Reservation, ReservationsError> {
        #[cfg(feature = "postgres")]
        if let Some(group) = &self.group {
            return group.perform(task).await;
        }
        self.transact_fairly(|sweep| Perform { task: task.clone(), sweep }).await
    }

    async fn transact<W: Work>(&self, work: impl Fn() -> W + Send + Sync) -> Result<W::Answer, ReservationsError> {
        self.transactions.run(work).await.map_err(|error| error.of(W::OPERATION))
    }

    /// Runs the work, and again with the holds that are over ended if units are lacking. Mostly there are none, and looking
    /// for them first would cost every request a statement.
    async fn transact_fairly<W, T>(&self, work: impl Fn(usize) -> W + Send + Sync) -> Result<T, ReservationsError>
    where
        W: Work<Answer = Swept<T>>,
        T: Send,
    {
        let mut sweep = 0;
        loop {
            let (answer, overdue) = self.transact(|| work(sweep)).await?;
            let may_be_more = sweep == 0 || overdue == sweep;
            match answer {
                Err(refusal) if is_for_lack_of_units(&refusal) && may_be_more => sweep = SWEEP,
                answer => return Ok(answer?),
            }
        }
    }
}

/// What Redis needs that keeps the holds.
#[cfg(feature = "redis")]
impl SqlReservations {
    /// Confirms a hold that Redis had in this epoch.
    pub(crate) async fn confirm_hold(&self, hold: Reservation, epoch: u64) -> Result<Reservation, ReservationsError> {
        self.carry_out(Task::ConfirmHold { hold, epoch }).await
    }

    /// Performs an operation on a key that Redis has noted in this epoch.
    pub(crate) async fn perform_in_epoch(
        &self,
        operation: Operation,
        epoch: u64,
    ) -> Result<Reservation, ReservationsError> {
        self.carry_out(Task::OperationInEpoch { operation, epoch }).await
    }

    /// The keys behind this one, in their order. The first ones are behind an empty text.
    pub(crate) async fn keys_after(&self, after: &str, limit: usize) -> Result<Vec<ReservationKey>, ReservationsError> {
        self.transact(|| KeysAfter { after: after.to_owned(), limit }).await
    }

    /// Whether it was not done because Redis has begun another epoch.
    pub(crate) fn is_fenced(error: &ReservationsError) -> bool {
        let ReservationsError::Unavailable { source, .. } = error else { return false };
        matches!(source.downcast_ref(), Some(WorkError::Fenced))
    }

    /// Reads what is committed. Callers that ask at the same time share a read.
    pub(crate) async fn look(&self, question: Question) -> Result<Found, ReservationsError> {
        self.reads.look(&self.transactions, question).await
    }

    pub(crate) async fn create_epochs(&self) -> Result<(), ReservationsError> {
        self.transact(|| CreateEpochs).await
    }

    pub(crate) async fn current_epoch(&self) -> Result<u64, ReservationsError> {
        self.transact(|| CurrentEpoch).await
    }

    pub(crate) async fn raise_epoch(&self, above: u64) -> Result<u64, ReservationsError> {
        self.transact(|| RaiseEpoch { above }).await
    }

    /// How far a test moved the clock, in microseconds.
    pub(crate) fn clock_moved_by(&self) -> i64 {
        self.transactions.clock_moved_by()
    }
}

#[async_trait]
impl Reservations for SqlReservations {
    async fn perform(&self, operation: Operation) -> Result<Reservation, ReservationsError> {
        self.carry_out(Task::Operation(operation)).await
    }

    async fn find(&self, key: &ReservationKey) -> Result<Option<Reservation>, ReservationsError> {
        self.transact(|| Find { key: key.clone() }).await
    }

    async fn set_capacity(&self, resource: &ResourceName, capacity: u64) -> Result<Resource, ReservationsError> {
        self.transact_fairly(|sweep| SetCapacity { resource: resource.clone(), capacity, sweep }).await
    }

    async fn resource(&self, name: &ResourceName) -> Result<Option<Resource>, ReservationsError> {
        self.transact(|| FindResource { name: name.clone() }).await
    }
}

#[async_trait]
impl ReservationsStore for SqlReservations {
    async fn expire_overdue(&self, limit: usize) -> Result<usize, ReservationsError> {
        self.transact(|| Expire { limit: limit.min(SWEEP) }).await
    }

    async fn prune(&self, keep: Duration, limit: usize) -> Result<usize, ReservationsError> {
        self.transact(|| Prune { keep, limit }).await
    }

    async fn ping(&self) -> Result<(), ReservationsError> {
        self.transact(|| Ping).await
    }
}

struct CreateTables;

impl Work for CreateTables {
    type Answer = ();

    const OPERATION: &'static str = "create the tables of reservations";

    async fn run<C: SqlConn>(&self, conn: &mut C, _clock_shift: i64) -> Result<(), WorkError> {
        Ok(create_tables(conn).await?)
    }
}
