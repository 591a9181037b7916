//! The epochs in memory, SQLite and PostgreSQL.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use saga_postgres::PostgresStore;
use saga_redis::{Epochs, LockService as _, MemoryEpochs, RedisLocks};
use saga_servers::RedisServer;
use saga_sqlite::SqliteStore;

use crate::support::{granted, options, request, token};

async fn obey(epochs: impl Epochs) {
    let epochs = Arc::new(epochs);
    assert_eq!(epochs.current(0).await.unwrap(), 0);
    assert_eq!(epochs.raise(0, 0).await.unwrap(), 1);
    assert_eq!(epochs.raise(0, 0).await.unwrap(), 2);
    assert_eq!(epochs.raise(0, 40).await.unwrap(), 41);
    assert_eq!(epochs.current(0).await.unwrap(), 41);
    assert_eq!(epochs.raise(63, 5).await.unwrap(), 6);
    assert_eq!(epochs.current(63).await.unwrap(), 6);
    let raise = |_| {
        let epochs = epochs.clone();
        tokio::spawn(async move { epochs.raise(7, 0).await.unwrap() })
    };
    let mut raised = BTreeSet::new();
    for task in (0..16).map(raise).collect::<Vec<_>>() {
        raised.insert(task.await.unwrap());
    }
    assert_eq!(raised, (1..=16).collect(), "no two raises return the same epoch");
}

#[tokio::test]
async fn epochs_in_memory_obey() {
    obey(MemoryEpochs::default()).await;
}

#[tokio::test]
async fn epochs_in_sqlite_obey() {
    let folder = tempfile::tempdir().unwrap();
    obey(SqliteStore::open(folder.path().join("shop.db")).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn epochs_in_postgres_obey() {
    let database = saga_servers::shared::database("epochs").await.unwrap();
    obey(PostgresStore::connect(database.url()).await.unwrap()).await;
}

/// Both the process and Redis lose all that they know, and the file stays.
#[tokio::test]
async fn tokens_grow_when_redis_and_the_process_are_new() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let server = RedisServer::start().await.unwrap();
        let store = SqliteStore::open(folder.path().join("shop.db")).await.unwrap();
        let locks = RedisLocks::connect(options(&server.url()), store).await.unwrap();
        let lock = granted(&locks, &request("a")).await;
        assert!(token(&lock) > last, "{lock:?}");
        last = token(&lock);
        locks.release(&lock).await.unwrap();
    }
}

/// The store of these epochs answers slowly, so that the calls of several callers overlap.
#[derive(Clone, Default)]
struct SlowEpochs {
    epochs: MemoryEpochs,
    raised: Arc<AtomicU64>,
}

#[async_trait]
impl Epochs for SlowEpochs {
    async fn raise(&self, slot: u16, above: u64) -> Result<u64, Box<dyn Error + Send + Sync>> {
        self.raised.fetch_add(1, Ordering::Relaxed);
        let epoch = self.epochs.raise(slot, above).await;
        tokio::time::sleep(PAUSE).await;
        epoch
    }

    async fn current(&self, slot: u16) -> Result<u64, Box<dyn Error + Send + Sync>> {
        tokio::time::sleep(PAUSE).await;
        self.epochs.current(slot).await
    }
}

const PAUSE: Duration = Duration::from_millis(20);

/// Asks all services for the same entity, one a while after the other. One of the requests is granted.
async fn ask_each(services: &[RedisLocks], after: Duration) {
    let ask = |(nth, locks): (usize, &RedisLocks)| {
        let locks = locks.clone();
        tokio::spawn(async move {
            tokio::time::sleep(after * nth as u32).await;
            locks.acquire(&request(&nth.to_string())).await.unwrap()
        })
    };
    let asking: Vec<_> = services.iter().enumerate().map(ask).collect();
    let mut granted = 0;
    for asked in asking {
        granted += usize::from(asked.await.unwrap().granted().is_some());
    }
    assert_eq!(granted, 1);
}

/// Each took the epoch of another one for outdated, and began one anew until it gave up.
#[tokio::test(flavor = "multi_thread")]
async fn callers_of_one_process_begin_one_epoch() {
    let server = RedisServer::start().await.unwrap();
    let epochs = SlowEpochs::default();
    let locks = RedisLocks::connect(options(&server.url()), epochs.clone()).await.unwrap();
    for flushed in 1..=3 {
        ask_each(&vec![locks.clone(); 32], Duration::ZERO).await;
        assert_eq!(epochs.raised.load(Ordering::Relaxed), flushed);
        server.command(&["FLUSHALL"]).await.unwrap();
    }
}

/// Each raised an epoch while the other one compared its own.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_do_not_begin_epochs_for_ever() {
    let server = RedisServer::start().await.unwrap();
    let epochs = SlowEpochs::default();
    let mut services = Vec::new();
    for _ in 0..2 {
        services.push(RedisLocks::connect(options(&server.url()), epochs.clone()).await.unwrap());
    }
    for _ in 0..3 {
        ask_each(&services, PAUSE / 2).await;
        server.command(&["FLUSHALL"]).await.unwrap();
    }
}
