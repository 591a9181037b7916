//! The epochs in memory, SQLite and PostgreSQL.

use std::collections::BTreeSet;
use std::sync::Arc;

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
