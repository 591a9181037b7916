//! The stores that the tests run on.

use std::future::Future;
use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::store::Store;
use saga_postgres::PostgresStore;
use saga_servers::shared::Database;
use saga_sqlite::SqliteStore;
use tempfile::TempDir;

/// A store that a test can have for itself.
pub(crate) trait Fresh: Store + Clone {
    /// What goes away with the store.
    type Place: Send;

    async fn fresh() -> (Self, Self::Place);

    /// The store as another process opens it.
    async fn another(&self, place: &Self::Place) -> Self;
}

impl Fresh for MemoryStore {
    type Place = ();

    async fn fresh() -> (Self, ()) {
        (Self::new(), ())
    }

    async fn another(&self, (): &()) -> Self {
        self.clone()
    }
}

impl Fresh for SqliteStore {
    type Place = TempDir;

    async fn fresh() -> (Self, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Self::open(folder.path().join("sagas.db")).await.unwrap(), folder)
    }

    /// One process has a file at a time.
    async fn another(&self, _folder: &TempDir) -> Self {
        self.clone()
    }
}

impl Fresh for PostgresStore {
    type Place = Database;

    async fn fresh() -> (Self, Database) {
        let database = saga_servers::shared::database("http_status").await.unwrap();
        (Self::connect(database.url()).await.unwrap(), database)
    }

    async fn another(&self, database: &Database) -> Self {
        Self::connect(database.url()).await.unwrap()
    }
}

/// Fails a test that hangs.
pub(crate) async fn within(test: impl Future<Output = ()>) {
    tokio::time::timeout(Duration::from_mins(5), test).await.expect("the test ends");
}

/// Runs each scenario on the memory store in virtual time, on SQLite and on PostgreSQL.
macro_rules! on_every_store {
    ($($scenario:ident),* $(,)?) => {
        mod memory {
            $(
                #[tokio::test(start_paused = true)]
                async fn $scenario() {
                    $crate::status::stores::within(super::$scenario::<saga_core::memory::MemoryStore>()).await;
                }
            )*
        }

        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    $crate::status::stores::within(super::$scenario::<saga_sqlite::SqliteStore>()).await;
                }
            )*
        }

        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    $crate::status::stores::within(super::$scenario::<saga_postgres::PostgresStore>()).await;
                }
            )*
        }
    };
}

pub(crate) use on_every_store;
