//! The orchestrator in this process, on threads of its own.

use std::path::Path;

use async_trait::async_trait;
use saga_core::transport::Transport;
use saga_core::{Runtime, Saga};
use saga_reservations::ReservationsClient;
use saga_sqlite::SqliteStore;

use super::orchestrator::{Orchestrator, start_runtime};
use crate::request::BookingRequest;

/// The orchestrator. Its tasks run on a tokio runtime of its own, so that killing that leaves nothing of it but the file.
#[derive(Debug)]
pub struct InProcess {
    threads: Threads,
    runtime: Runtime<SqliteStore>,
    store: SqliteStore,
    saga: Saga<SqliteStore, BookingRequest>,
}

impl InProcess {
    /// Starts it on this file. It continues the sagas in it.
    pub async fn start(
        file: &Path,
        saga: &Saga<SqliteStore, BookingRequest>,
        transport: impl Transport,
        seats: ReservationsClient,
    ) -> anyhow::Result<Self> {
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (file, definition) = (file.to_owned(), saga.clone());
        let starting = threads.spawn(async move {
            let store = SqliteStore::open(file).await?;
            let runtime = start_runtime(store.clone(), &definition, transport, seats).await?;
            anyhow::Ok((store, runtime))
        });
        let threads = Threads(Some(threads));
        let (store, runtime) = starting.await??;
        Ok(Self { threads, runtime, store, saga: saga.clone() })
    }
}

/// The threads. When this is dropped, they end and are not waited for, since an async function must not wait.
#[derive(Debug)]
struct Threads(Option<tokio::runtime::Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(threads) = self.0.take() {
            threads.shutdown_background();
        }
    }
}

#[async_trait]
impl Orchestrator for InProcess {
    async fn book(&self, key: &str, request: &BookingRequest) -> anyhow::Result<()> {
        self.runtime.start(&self.saga, key, request.clone()).await?;
        Ok(())
    }

    async fn outcome(&self, key: &str) -> anyhow::Result<String> {
        Ok(self.runtime.attach(key).await?.outcome().await?.to_string())
    }

    async fn closed(&self, key: &str) -> anyhow::Result<String> {
        Ok(self.runtime.attach(key).await?.closed().await?.to_string())
    }

    async fn kill(mut self: Box<Self>) -> anyhow::Result<()> {
        let threads = self.threads.0.take();
        // Its tasks end where they are: nothing is shut down, given back or told to others.
        tokio::task::spawn_blocking(move || drop(threads)).await?;
        self.store.close().await;
        Ok(())
    }
}
