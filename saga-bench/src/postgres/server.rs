//! The server that the contenders share: durable, as a database in production is.

use anyhow::{Context as _, Result, ensure};
use saga_servers::{PostgresServer, psql};

/// What makes a commit survive a power loss. The rest is as the system's packages have it.
const SETTINGS: [(&str, &str); 3] = [("fsync", "on"), ("full_page_writes", "on"), ("shared_buffers", "256MB")];

/// Starts a server of the benchmark's own.
pub(crate) async fn start() -> Result<PostgresServer> {
    let server = PostgresServer::start_with(&SETTINGS).await.context("the benchmark needs a PostgreSQL of its own")?;
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        let value = psql(&server.url(), &format!("SHOW {setting}")).await?;
        ensure!(value.trim() == "on", "{setting} is {value}, and the benchmark is about durable commits");
    }
    Ok(server)
}
