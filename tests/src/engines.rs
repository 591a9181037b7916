use std::future::Future;
use std::pin::Pin;

use saga_core::Runtime;
use saga_core::memory::MemoryStore;
use saga_core::store::Store;
use saga_postgres::PostgresStore;
use saga_sqlite::SqliteStore;

/// A run of the engine that nobody makes.
pub type Engine = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The engine on each store: compiled here, it is not compiled once more in each program of tests.
pub fn engines(memory: MemoryStore, sqlite: SqliteStore, postgres: PostgresStore) -> [Engine; 3] {
    [Box::pin(engine(memory)), Box::pin(engine(sqlite)), Box::pin(engine(postgres))]
}

async fn engine<S: Store>(store: S) {
    let Ok(runtime) = Runtime::builder(store).start().await else { return };
    if let Ok(running) = runtime.attach("nobody").await {
        drop(running.outcome().await);
    }
    runtime.shutdown().await;
}
