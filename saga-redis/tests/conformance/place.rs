//! The Redis of a check.

use std::sync::Arc;
use std::time::Duration;

use saga_core::Entity;
use saga_redis::{AcquireRequest, Acquired, HeldLock, LockService, MemoryEpochs, RedisLocks, RedisOptions};
use saga_servers::{RedisCluster, RedisServer};
use tokio::sync::OnceCell;

/// Long enough that it never ends in a test.
pub(crate) const LONG: Duration = Duration::from_mins(10);
/// So short that it has ended when the next question arrives, or the one after it.
pub(crate) const SHORT: Duration = Duration::from_millis(1);

/// The servers of all checks of this program: each check has keys of its own.
static SERVER: OnceCell<RedisServer> = OnceCell::const_new();
static REPLICATED: OnceCell<(RedisServer, RedisServer)> = OnceCell::const_new();
static CLUSTER: OnceCell<RedisCluster> = OnceCell::const_new();

/// A lock service that no other check uses.
pub(crate) struct Place {
    pub(crate) locks: Arc<dyn LockService>,
    servers: Vec<&'static RedisServer>,
    prefix: String,
}

impl Place {
    pub(crate) async fn server(check: &str) -> Self {
        let server = SERVER.get_or_init(async || RedisServer::start().await.unwrap()).await;
        Self::of(RedisOptions::new(server.url()), vec![server], check).await
    }

    /// Grants count when the replica has them.
    pub(crate) async fn replicated(check: &str) -> Self {
        let start = async || {
            let server = RedisServer::start().await.unwrap();
            let replica = server.start_replica().await.unwrap();
            (server, replica)
        };
        let (server, _) = REPLICATED.get_or_init(start).await;
        let options = RedisOptions::new(server.url()).replicas(1).confirm_timeout(Duration::from_secs(30));
        Self::of(options, vec![server], check).await
    }

    pub(crate) async fn cluster(check: &str) -> Self {
        let cluster = CLUSTER.get_or_init(async || RedisCluster::start().await.unwrap()).await;
        Self::of(RedisOptions::cluster(cluster.urls()), cluster.nodes().iter().collect(), check).await
    }

    async fn of(options: RedisOptions, servers: Vec<&'static RedisServer>, check: &str) -> Self {
        let prefix: String = check.chars().take(40).collect();
        let options = options.prefix(&prefix).response_timeout(Duration::from_mins(1));
        let locks = RedisLocks::connect(options, MemoryEpochs::default()).await.unwrap();
        Self { locks: Arc::new(locks), servers, prefix }
    }

    /// A service that is not quite this one.
    pub(crate) fn with(self, change: impl FnOnce(Arc<dyn LockService>) -> Arc<dyn LockService>) -> Self {
        Self { locks: change(self.locks.clone()), ..self }
    }

    /// Removes all keys of this check, as `FLUSHALL` would.
    pub(crate) async fn lose_everything(&self) {
        for server in &self.servers {
            let keys = server.command(&["KEYS", &format!("{{{}:*", self.prefix)]).await.unwrap();
            for key in keys.lines() {
                server.command(&["DEL", key]).await.unwrap();
            }
        }
    }

    pub(crate) async fn ask(&self, request: &AcquireRequest) -> Acquired {
        self.locks.acquire(request).await.unwrap()
    }

    /// The lock, which must be granted at once.
    pub(crate) async fn granted(&self, request: &AcquireRequest) -> HeldLock {
        match self.ask(request).await {
            Acquired::Granted(lock) => lock,
            waits @ Acquired::Waits { .. } => panic!("{} has to wait: {waits:?}", request.holder()),
        }
    }

    /// The rest of the lease of the holder before this one, which must wait.
    pub(crate) async fn waits(&self, request: &AcquireRequest) -> Option<Duration> {
        match self.ask(request).await {
            Acquired::Waits { lease_left, .. } => lease_left,
            granted @ Acquired::Granted(_) => panic!("{} need not wait: {granted:?}", request.holder()),
        }
    }

    /// Asks until the request is granted.
    pub(crate) async fn granted_in_the_end(&self, request: &AcquireRequest) -> HeldLock {
        for _ in 0..2_000 {
            if let Acquired::Granted(lock) = self.ask(request).await {
                return lock;
            }
            tokio::task::yield_now().await;
        }
        panic!("{} was never granted", request.holder());
    }
}

pub(crate) fn account() -> Entity {
    Entity::new("account", 7)
}

/// A request for the account, with times that never end in a test.
pub(crate) fn request(holder: &str) -> AcquireRequest {
    request_for([account()], holder)
}

pub(crate) fn request_for(entities: impl IntoIterator<Item = Entity>, holder: &str) -> AcquireRequest {
    AcquireRequest::new(entities, holder).lease_ttl(LONG).wait_ttl(LONG)
}

pub(crate) fn token(lock: &HeldLock) -> u64 {
    lock.token_of(&account()).unwrap()
}
