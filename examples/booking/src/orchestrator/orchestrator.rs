//! What an orchestrator is, wherever it runs.

use std::fmt;

use anyhow::Context as _;
use async_trait::async_trait;
use saga_core::transport::Transport;
use saga_core::{Runtime, Saga};
use saga_reservations::ReservationsClient;
use saga_sqlite::SqliteStore;

use crate::request::BookingRequest;

/// The orchestrator as its clients see it.
#[async_trait]
pub trait Orchestrator: fmt::Debug + Send + Sync {
    /// Starts the saga with this key, and returns when it is durable. If it was started before, it is the same saga.
    async fn book(&self, key: &str, request: &BookingRequest) -> anyhow::Result<()>;

    /// Waits until the saga has ended or is stuck, and says how.
    async fn outcome(&self, key: &str) -> anyhow::Result<String>;

    /// Waits until the saga has ended, and says how.
    async fn closed(&self, key: &str) -> anyhow::Result<String>;

    /// Ends the orchestrator in the middle of what it does, and returns when its file is free.
    async fn kill(self: Box<Self>) -> anyhow::Result<()>;
}

/// Starts the runtime of the orchestrator on its file. It reserves seats by this client.
pub async fn start_runtime(
    store: SqliteStore,
    saga: &Saga<SqliteStore, BookingRequest>,
    transport: impl Transport,
    seats: ReservationsClient,
) -> anyhow::Result<Runtime<SqliteStore>> {
    let builder = Runtime::builder(store).saga(saga).transport(transport).state(seats);
    let builder = builder.settings(|settings| settings.service = Some("orchestrator".to_owned()));
    builder.start().await.context("cannot start the orchestrator")
}
