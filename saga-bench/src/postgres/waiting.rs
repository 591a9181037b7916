//! How much memory a process needs that takes sagas from a store in which very many wait: it is a process of its own.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use saga_postgres::PostgresStore;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use super::finished::{copy_rows, reserve_ids};
use super::measure::Done;
use super::saga::{order, orders, runtime};
use super::workload::STEPS_PER_SAGA;
use crate::clock::Stopwatch;

/// The tables that a saga that waits has rows in, with the columns that differ between sagas.
const TABLES: [(&str, &[(&str, &str)]); 3] = [
    ("sagas", &[("id", "$first + 2 * n"), ("key", "'order-' || n")]),
    ("progress", &[("id", "$first + 2 * n")]),
    ("work", &[("id", "$first + 2 * n + 1"), ("saga", "$first + 2 * n"), ("key", "'order-' || n")]),
];

/// The process that takes them.
#[derive(Debug, Args)]
pub(crate) struct Child {
    #[arg(long)]
    url: String,
    /// How many sagas it brings to their end before it tells.
    #[arg(long)]
    sagas: u32,
}

/// Fills an empty database with sagas whose first step is due.
pub(super) async fn fill(url: &str, waiting: u32) -> Result<()> {
    let saga = orders()?;
    let runtime = runtime(url, &saga).await?;
    let mut conn = PgConnection::connect(url).await?;
    let first = reserve_ids(&mut conn, waiting * 2).await?;
    // No process sees them before the commit, and by then the runtime is gone.
    let mut tx = conn.begin().await?;
    drop(runtime.start(&saga, "order-0", order(0)).in_tx(&mut tx).await?);
    for (table, changed) in TABLES {
        let numbers = format!("generate_series(1, {})", waiting - 1);
        let copy = copy_rows(&mut tx, table, changed, &numbers, first).await?;
        tx.execute(sqlx::raw_sql(AssertSqlSafe(copy))).await.with_context(|| format!("cannot fill {table}"))?;
    }
    let store: PostgresStore = (**runtime.store()).clone();
    runtime.shutdown().await;
    store.close().await;
    tx.commit().await?;
    for (table, _) in TABLES {
        conn.execute(sqlx::raw_sql(AssertSqlSafe(format!("VACUUM ANALYZE saga.{table}")))).await?;
    }
    let waiting_now: i64 = sqlx::query_scalar("SELECT count(*) FROM saga.work").fetch_one(&mut conn).await?;
    ensure!(waiting_now == i64::from(waiting), "{waiting_now} sagas wait, not {waiting}");
    Ok(conn.close().await?)
}

/// Lets a process of its own take some of them, and tells the most memory that it held, in MB.
pub(super) async fn run(url: &str, sagas: u32) -> Result<(Done, f64)> {
    let mut child = Command::new(std::env::current_exe()?);
    child.arg("waiting-child").args(["--url", url]).arg(format!("--sagas={sagas}"));
    child.stderr(Stdio::inherit());
    let output = tokio::task::spawn_blocking(move || child.output()).await??;
    ensure!(output.status.success(), "the process that takes sagas from a full store ended with {}", output.status);
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| told[name].as_f64().with_context(|| format!("the process did not tell {name}"));
    let steps = told["sagas"].as_u64().and_then(|sagas| u32::try_from(sagas).ok()).unwrap_or_default() * STEPS_PER_SAGA;
    Ok((Done::new(steps, Duration::from_secs_f64(number("seconds")?)), number("peak_mb")?))
}

/// The process: it takes work from the store until so many sagas have ended, and tells what it needed.
pub(crate) fn run_child(child: &Child) -> Result<bool> {
    let executor = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    executor.block_on(async {
        let watch = Stopwatch::started();
        let runtime = runtime(&child.url, &orders()?).await?;
        let ended = async || runtime.statistics().steps / u64::from(STEPS_PER_SAGA);
        while ended().await < u64::from(child.sagas) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let (sagas, took) = (ended().await, watch.elapsed());
        let peak_mb = peak_bytes()? / 1e6;
        runtime.shutdown().await;
        println!("{}", json!({ "sagas": sagas, "seconds": took.as_secs_f64(), "peak_mb": peak_mb }));
        Ok(true)
    })
}

/// The most memory that this process ever held.
fn peak_bytes() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("the system tells no peak")?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024.0)
}
