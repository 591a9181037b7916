//! The server that the contenders share: durable, as a database in production is.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use saga_servers::{PostgresServer, psql};

use crate::disk;

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

/// What the figures were measured on: the server and how it is set, and the machine.
pub(super) async fn describe(server: &PostgresServer) -> Result<String> {
    let version = psql(&server.url(), "SHOW server_version").await?;
    let mut settings = Vec::new();
    for setting in ["fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "wal_level", "max_wal_size"] {
        settings.push(format!("{setting}={}", psql(&server.url(), &format!("SHOW {setting}")).await?.trim()));
    }
    let cores = std::thread::available_parallelism()?;
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let flush = disk::flush_time(server.folder())?;
    Ok(format!(
        "PostgreSQL {}, {}, by TCP on this machine\n{cores} cores for client and server ({}), load {}, one flush of 8 kB {:.2} ms",
        version.trim(),
        settings.join(" "),
        cpu.trim_start_matches([' ', '\t', ':']),
        load.split(' ').next().unwrap_or_default(),
        flush.as_secs_f64() * 1e3
    ))
}
