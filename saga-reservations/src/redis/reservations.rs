use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use saga_redis::RedisOptions;

use super::holds::Holds;
use super::load_progress::LoadProgress;
use super::mark_rounds::MarkRounds;
use super::points::Points;
use super::requests::Requests;
use crate::book::{Action, Operation, Reservation, ReservationKey, Resource, ResourceName};
use crate::contract::{Reservations, ReservationsStore};
use crate::{ReservationsError, SqlReservations};

/// Reservations whose holds are in Redis. Capacities, confirmations, and what bars a late request are in SQL, which decides
/// about each confirmation: Redis takes the holds off the database, and cannot oversell whatever it loses.
///
/// All servers of a book use the same database, the same Redis and the same prefix. A clone shares the connections.
///
/// If Redis loses its data, the holds are lost, and their confirmations are refused with `EXPIRED`. Until they would have
/// expired, more may be held than there is; what is confirmed stays within the capacity.
///
/// # Examples
/// ```no_run
/// use saga_reservations::{RedisReservations, ReservationsClient, Reserve, SqlReservations};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sql = SqlReservations::connect_postgres("postgres://localhost/shop").await?;
/// let client = ReservationsClient::new(RedisReservations::connect("redis://127.0.0.1:6379", sql).await?);
/// client.set_capacity("seat/LH-400", 2).await?;
/// let held = client.reserve(Reserve::of("seat/LH-400", 2).key("order-7").ttl_mins(15)).await?;
/// held.confirm().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisReservations {
    pub(super) holds: Arc<Holds>,
    pub(super) requests: Requests,
    pub(super) mark_rounds: MarkRounds,
    pub(super) sql: SqlReservations,
    pub(super) points: Points,
    pub(super) load_progress: Arc<tokio::sync::Mutex<LoadProgress>>,
}

impl RedisReservations {
    /// Connects to one Redis server, such as `redis://:password@host:6379`.
    ///
    /// # Errors
    /// When the address is wrong, when Redis or the database does not answer, and when Redis may forget holds for lack of memory.
    ///
    /// # Cancel safety
    /// Dropped, no connection stays open, and a table may have been created.
    pub async fn connect(url: &str, sql: SqlReservations) -> Result<Self, ReservationsError> {
        Self::connect_with(RedisOptions::new(url), sql).await
    }

    /// Connects with options: a cluster, a prefix, replicas that must confirm a hold. All keys of a book are in one slot.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    ///
    /// # Cancel safety
    /// That of [`connect`](Self::connect).
    pub async fn connect_with(options: RedisOptions, sql: SqlReservations) -> Result<Self, ReservationsError> {
        let holds = Arc::new(Holds::open(options, sql.clone()).await?);
        let requests = Requests::to(Arc::clone(&holds));
        Ok(Self {
            holds,
            requests,
            mark_rounds: MarkRounds::default(),
            sql,
            points: Points::default(),
            load_progress: Arc::default(),
        })
    }

    /// The same reservations, with a test that steps in where their work reaches a point.
    #[cfg(feature = "test-clock")]
    #[must_use]
    pub fn stepping_in(
        self,
        reach: impl Fn(super::Point) -> saga_core::env::BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self { points: Points::new(reach), ..self }
    }
}

#[async_trait]
impl Reservations for RedisReservations {
    async fn perform(&self, operation: Operation) -> Result<Reservation, ReservationsError> {
        match &operation.action {
            Action::Reserve(request) => self.reserve(&operation, request).await,
            Action::Confirm { token, late } => self.confirm(&operation, *token, *late).await,
            Action::Release { token } => self.release(&operation, *token).await,
            Action::Extend { token, ttl } => self.extend(&operation, *token, *ttl).await,
            Action::GiveBack { .. } => self.give_back(&operation).await,
        }
    }

    async fn find(&self, key: &ReservationKey) -> Result<Option<Reservation>, ReservationsError> {
        self.find_in_both(key).await
    }

    async fn set_capacity(&self, resource: &ResourceName, capacity: u64) -> Result<Resource, ReservationsError> {
        self.change_capacity(resource, capacity).await
    }

    async fn resource(&self, name: &ResourceName) -> Result<Option<Resource>, ReservationsError> {
        self.find_resource(name).await
    }
}

#[async_trait]
impl ReservationsStore for RedisReservations {
    async fn expire_overdue(&self, limit: usize) -> Result<usize, ReservationsError> {
        self.sweep(limit).await
    }

    async fn prune(&self, keep: Duration, limit: usize) -> Result<usize, ReservationsError> {
        self.forget(keep, limit).await
    }

    async fn ping(&self) -> Result<(), ReservationsError> {
        self.sql.ping().await?;
        self.reach_redis().await
    }
}

impl fmt::Debug for RedisReservations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisReservations")
            .field("redis", &self.holds.address())
            .field("sql", &self.sql)
            .finish_non_exhaustive()
    }
}
