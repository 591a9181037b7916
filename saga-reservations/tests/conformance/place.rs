//! Where the reservations of a check are.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use saga_redis::RedisOptions;
use saga_reservations::grpc::ReservationsService;
use saga_reservations::{
    Action, MemoryReservations, Operation, Reason, RedisReservations, Reservation, ReservationKey, Reservations,
    ReservationsClient, ReservationsError, ReservationsStore, Reserve, ResourceName, SqlReservations,
};
use saga_servers::RedisServer;
use tokio::net::TcpListener;
use tokio::sync::OnceCell;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::clock::Clock;
use crate::interposed::{Between, Interposed};

/// The Redis of all checks of this program: each one has a prefix of its own.
static REDIS: OnceCell<RedisServer> = OnceCell::const_new();
static PLACES: AtomicU32 = AtomicU32::new(0);

/// Reservations of one check alone.
pub(crate) struct Place {
    pub(crate) reservations: Arc<dyn Reservations>,
    /// Behind the reservations, where the sweeper works.
    pub(crate) store: Arc<dyn ReservationsStore>,
    pub(crate) clock: Clock,
    /// The prefix in Redis, if it has the holds.
    prefix: Option<String>,
    _kept: Box<dyn Any + Send + Sync>,
}

impl Place {
    pub(crate) async fn memory() -> Self {
        let clock = Clock::default();
        let store = Arc::new(MemoryReservations::new(Arc::new(clock.clone())));
        Self { reservations: store.clone(), store, clock, prefix: None, _kept: Box::new(()) }
    }

    pub(crate) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqlReservations::open_sqlite(folder.path().join("reservations.db")).await.unwrap();
        Self::sql(store, Box::new(folder))
    }

    pub(crate) async fn postgres() -> Self {
        let database = saga_servers::shared::database("reservations").await.unwrap();
        let store = SqlReservations::connect_postgres(database.url()).await.unwrap();
        Self::sql(store, Box::new(database))
    }

    pub(crate) async fn redis_over_sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqlReservations::open_sqlite(folder.path().join("reservations.db")).await.unwrap();
        Self::redis(store, Box::new(folder)).await
    }

    pub(crate) async fn redis_over_postgres() -> Self {
        let database = saga_servers::shared::database("reservations").await.unwrap();
        let store = SqlReservations::connect_postgres(database.url()).await.unwrap();
        Self::redis(store, Box::new(database)).await
    }

    /// A server over memory, and the client.
    pub(crate) async fn grpc() -> Self {
        let memory = Self::memory().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = ReservationsService::new(memory.reservations.clone()).into_server();
        let served = Server::builder().add_service(service).serve_with_incoming(TcpIncoming::from(listener));
        tokio::spawn(served);
        let remote = saga_reservations::grpc::RemoteReservations::connect(&url).unwrap();
        Self { reservations: Arc::new(remote), ..memory }
    }

    /// Reservations that are not quite these.
    pub(crate) fn with(self, change: impl FnOnce(Arc<dyn Reservations>) -> Arc<dyn Reservations>) -> Self {
        Self { reservations: change(self.reservations.clone()), ..self }
    }

    fn sql(store: SqlReservations, kept: Box<dyn Any + Send + Sync>) -> Self {
        let clock = Clock(store.clock_shift());
        let store = Arc::new(store);
        Self { reservations: store.clone(), store, clock, prefix: None, _kept: kept }
    }

    async fn redis(sql: SqlReservations, kept: Box<dyn Any + Send + Sync>) -> Self {
        let server = REDIS.get_or_init(async || RedisServer::start().await.unwrap()).await;
        let prefix = format!("place-{}", PLACES.fetch_add(1, Ordering::Relaxed));
        let options = RedisOptions::new(server.url()).prefix(&prefix).response_timeout(Duration::from_mins(1));
        let clock = Clock(sql.clock_shift());
        let store = Arc::new(RedisReservations::connect_with(options, sql).await.unwrap());
        Self { reservations: store.clone(), store, clock, prefix: Some(prefix), _kept: kept }
    }

    /// Whether what can be lost is lost: all keys of this check in Redis, as by `FLUSHALL`.
    pub(crate) async fn lose_everything(&self) -> bool {
        let (Some(prefix), Some(server)) = (&self.prefix, REDIS.get()) else { return false };
        let keys = server.command(&["KEYS", &format!("{{{prefix}:*")]).await.unwrap();
        for key in keys.lines() {
            server.command(&["DEL", key]).await.unwrap();
        }
        true
    }

    pub(crate) fn client(&self) -> ReservationsClient {
        ReservationsClient::new(Interposed(Shared(self.reservations.clone())))
    }

    pub(crate) async fn capacity(&self, name: &str, capacity: u64) {
        self.client().set_capacity(name, capacity).await.unwrap();
    }

    pub(crate) async fn act(&self, key: &str, action: Action) -> Result<Reservation, Reason> {
        let answer = self.reservations.perform(Operation::new(ReservationKey::new(key).unwrap(), action)).await;
        answer.map_err(|error| error.refusal().unwrap_or_else(|| panic!("{error:?}")).reason())
    }

    pub(crate) async fn reserve(&self, key: &str, request: Reserve) -> Result<Reservation, Reason> {
        self.act(key, Action::Reserve(request)).await
    }

    pub(crate) async fn find(&self, key: &str) -> Option<Reservation> {
        self.reservations.find(&ReservationKey::new(key).unwrap()).await.unwrap()
    }

    /// The units that are confirmed, and those that are held.
    pub(crate) async fn taken(&self, name: &str) -> (u64, u64) {
        let resource = self.reservations.resource(&ResourceName::new(name).unwrap()).await.unwrap().unwrap();
        assert!(resource.taken() <= resource.capacity, "{resource:?}");
        (resource.confirmed, resource.held)
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) async fn sweep(&self) -> usize {
        self.store.expire_overdue(64).await.unwrap()
    }
}

/// Reservations that several clients share.
struct Shared(Arc<dyn Reservations>);

#[async_trait::async_trait]
impl Between for Shared {
    fn inner(&self) -> &dyn Reservations {
        &*self.0
    }

    async fn perform(&self, operation: Operation) -> Result<Reservation, ReservationsError> {
        self.0.perform(operation).await
    }
}
