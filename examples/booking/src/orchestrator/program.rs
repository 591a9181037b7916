//! The orchestrator as a program: it reads requests from its standard input, and prints how their sagas end.

use std::path::Path;

use anyhow::Context as _;
use saga_core::SagaHandle;
use saga_reservations::ReservationsClient;
use saga_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::task::JoinSet;

use super::orchestrator::start_runtime;
use crate::broker::Broker;
use crate::request::BookingRequest;
use crate::saga::book_seat;

/// The command of the program that runs this.
pub const PROGRAM: &str = "orchestrator";

/// A line of the standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) key: String,
    pub(super) request: BookingRequest,
}

/// A line of the standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// It receives what is sent to it.
    Started,
    /// This saga is durable.
    Booked { key: String },
    /// This saga has ended, or is stuck.
    Outcome { key: String, outcome: String },
    /// This saga has ended.
    Closed { key: String, outcome: String },
}

/// Runs until the standard input ends.
///
/// # Errors
/// The file, the broker or the seat map cannot be opened, a line is no request, or an outcome cannot be told.
///
/// # Cancel safety
/// If it is dropped, the next process continues.
pub async fn run(file: &Path, broker: &str, seats: &str) -> anyhow::Result<()> {
    let saga = book_seat()?;
    let transport = Broker::connect(broker).await?.transport;
    let seats = ReservationsClient::connect(seats).await?;
    let runtime = start_runtime(SqliteStore::open(file).await?, &saga, transport, seats).await?;
    say(&Said::Started)?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut followed = JoinSet::new();
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let Some(line) = line? else { break };
                let asked: Asked = serde_json::from_str(&line).with_context(|| format!("{line} is no request"))?;
                let running = runtime.start(&saga, asked.key, asked.request).await?;
                say(&Said::Booked { key: running.key().to_string() })?;
                followed.spawn(follow(running));
            }
            // If an outcome cannot be told, the program ends: the next process continues, and tells it.
            Some(told) = followed.join_next() => told??,
        }
    }
    runtime.shutdown().await;
    Ok(())
}

async fn follow(running: SagaHandle<SqliteStore>) -> anyhow::Result<()> {
    let key = running.key().to_string();
    let outcome = running.outcome().await?.to_string();
    say(&Said::Outcome { key: key.clone(), outcome })?;
    let outcome = running.closed().await?.to_string();
    say(&Said::Closed { key, outcome })
}

fn say(said: &Said) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(said)?);
    Ok(())
}
