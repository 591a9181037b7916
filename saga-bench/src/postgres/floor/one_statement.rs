//! F4: a step is one statement, which commits by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result};
use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinSet;

use crate::clock::Stopwatch;
use crate::figures::percentile;
use crate::postgres::measure::Done;
use crate::postgres::workload::STEPS_PER_SAGA;

const OUTPUT: &str = "{\"number\":7,\"amount\":107}";

macro_rules! step {
    ($table:literal) => {
        concat!(
            "WITH key AS (INSERT INTO floor_keys (key, step, output) VALUES (gen_random_uuid(), $1, $2)), \
             business AS (INSERT INTO ",
            $table,
            " (order_id, amount) VALUES ($3, $4)), \
             saga AS (UPDATE floor_sagas SET position = position + 1, advanced_at = now() WHERE id = $3) \
             INSERT INTO floor_outbox (saga, payload) VALUES ($3, $2)"
        )
    };
}

const STEPS: [(&str, &str); STEPS_PER_SAGA as usize] = [
    ("reserve-stock", step!("reservations")),
    ("charge-card", step!("payments")),
    ("confirm-order", step!("confirmations")),
];

/// Runs so many sagas in so many tasks, each with a connection and with prepared statements.
pub(crate) async fn run(url: &str, sagas: u32, tasks: u32) -> Result<Done> {
    let mut connections = Vec::new();
    for _ in 0..tasks {
        connections.push(PgConnection::connect(url).await?);
    }
    let next = Arc::new(AtomicU32::new(0));
    let watch = Stopwatch::started();
    let mut running = JoinSet::new();
    for conn in connections {
        running.spawn(task(conn, Arc::clone(&next), sagas));
    }
    let mut latencies = Vec::new();
    while let Some(task) = running.join_next().await {
        latencies.extend(task.context("a task panicked")??);
    }
    let done = Done::new(sagas * STEPS_PER_SAGA, watch.elapsed());
    Ok(Done { p50_ms: Some(percentile(&latencies, 0.5)), p99_ms: Some(percentile(&latencies, 0.99)), ..done })
}

async fn task(mut conn: PgConnection, next: Arc<AtomicU32>, sagas: u32) -> Result<Vec<f64>> {
    let mut latencies = Vec::new();
    loop {
        let saga = next.fetch_add(1, Ordering::Relaxed);
        if saga >= sagas {
            conn.close().await?;
            return Ok(latencies);
        }
        let watch = Stopwatch::started();
        for (name, sql) in STEPS {
            let step = sqlx::query(sql).bind(name).bind(OUTPUT).bind(i64::from(saga)).bind(107_i64);
            step.execute(&mut conn).await?;
        }
        latencies.push(watch.elapsed().as_secs_f64() * 1e3);
    }
}
