//! A book with one kind of seat.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use saga_reservations::{
    Action, FencingToken, Late, Operation, Point, Reason, RedisReservations, Reservation, ReservationKey,
    Reservations as _, ReservationsError, ReservationsStore as _, Reserve, ResourceName, SqlReservations,
};
use saga_servers::RedisServer;

/// Two servers over one database and one Redis.
pub(crate) struct Shop {
    pub(crate) redis: Arc<RedisServer>,
    pub(crate) sql: SqlReservations,
    pub(crate) one: RedisReservations,
    pub(crate) other: RedisReservations,
    _folder: tempfile::TempDir,
}

impl Shop {
    /// So many seats.
    pub(crate) async fn open(seats: u64) -> Self {
        let redis = Arc::new(RedisServer::start().await.unwrap());
        Self::at(&redis.url(), Arc::clone(&redis), seats).await
    }

    /// The same with Redis at this address, such as that of a proxy.
    pub(crate) async fn at(url: &str, redis: Arc<RedisServer>, seats: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sql = SqlReservations::open_sqlite(folder.path().join("reservations.db")).await.unwrap();
        let one = RedisReservations::connect(url, sql.clone()).await.unwrap();
        let other = RedisReservations::connect(url, sql.clone()).await.unwrap();
        let shop = Self { redis, sql, one, other, _folder: folder };
        shop.one.set_capacity(&seat(), seats).await.unwrap();
        shop
    }

    /// The first server, whose work does this the first time that it reaches the point.
    pub(crate) fn at_point<F: Future<Output = ()> + Send + 'static>(
        &self,
        point: Point,
        act: impl Fn() -> F + Send + Sync + 'static,
    ) -> RedisReservations {
        let is_done = AtomicBool::new(false);
        self.one.clone().stepping_in(move |reached| {
            if reached == point && !is_done.swap(true, Ordering::SeqCst) {
                return Box::pin(act());
            }
            Box::pin(async {})
        })
    }

    pub(crate) async fn flush(&self) {
        self.redis.command(&["FLUSHALL"]).await.unwrap();
    }

    pub(crate) fn advance(&self, duration: Duration) {
        self.sql.clock_shift().fetch_add(i64::try_from(duration.as_micros()).unwrap(), Ordering::SeqCst);
    }

    /// What is confirmed and held; nothing is oversold.
    pub(crate) async fn taken(&self) -> (u64, u64) {
        let known = self.other.resource(&seat()).await.unwrap().unwrap();
        let in_sql = self.sql.resource(&seat()).await.unwrap().unwrap();
        assert_eq!((known.confirmed, known.capacity), (in_sql.confirmed, in_sql.capacity));
        assert!(known.confirmed <= known.capacity, "{known:?}");
        (known.confirmed, known.held)
    }

    /// Sweeps behind the age at which a mark counts as left behind.
    pub(crate) async fn sweep(&self) {
        self.advance(Duration::from_secs(6));
        self.other.expire_overdue(64).await.unwrap();
    }
}

pub(crate) fn seat() -> ResourceName {
    ResourceName::new("seat").unwrap()
}

pub(crate) async fn act(
    server: &RedisReservations,
    name: &str,
    action: Action,
) -> Result<Reservation, ReservationsError> {
    server.perform(Operation::new(ReservationKey::new(name).unwrap(), action)).await
}

pub(crate) async fn reserve(server: &RedisReservations, name: &str) -> Result<Reservation, ReservationsError> {
    act(server, name, Action::Reserve(Reserve::of("seat", 1).ttl_secs(60))).await
}

pub(crate) async fn confirm(
    server: &RedisReservations,
    name: &str,
    token: FencingToken,
) -> Result<Reservation, ReservationsError> {
    act(server, name, Action::Confirm { token, late: Late::Refuse }).await
}

pub(crate) fn reason(answer: Result<Reservation, ReservationsError>) -> Reason {
    let error = answer.unwrap_err();
    error.refusal().unwrap_or_else(|| panic!("{error:?}")).reason()
}
