//! F5: fifty steps are one statement, which takes them as arrays and commits by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result};
use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinSet;

use crate::clock::Stopwatch;
use crate::postgres::measure::Done;
use crate::postgres::workload::STEPS_PER_SAGA;

const BATCH: u32 = 50;
/// Each keeps one of the two cores busy; more of them are slower.
const TASKS: u32 = 2;
const OUTPUT: &str = "{\"number\":7,\"amount\":107}";

macro_rules! steps {
    ($table:literal) => {
        concat!(
            "WITH key AS (INSERT INTO floor_keys (key, step, output) \
                SELECT gen_random_uuid(), $1, output FROM unnest($2::text[]) output), \
             business AS (INSERT INTO ",
            $table,
            " (order_id, amount) SELECT * FROM unnest($3::bigint[], $4::bigint[])), \
             saga AS (UPDATE floor_sagas SET position = position + 1, advanced_at = now() \
                FROM unnest($3::bigint[]) advanced (saga) WHERE id = advanced.saga) \
             INSERT INTO floor_outbox (saga, payload) SELECT * FROM unnest($3::bigint[], $2::text[])"
        )
    };
}

const STEPS: [(&str, &str); STEPS_PER_SAGA as usize] = [
    ("reserve-stock", steps!("reservations")),
    ("charge-card", steps!("payments")),
    ("confirm-order", steps!("confirmations")),
];

/// Runs so many sagas, rounded down to whole batches and at least one.
pub(crate) async fn run(url: &str, sagas: u32) -> Result<Done> {
    let batches = (sagas / BATCH).max(1);
    let next = Arc::new(AtomicU32::new(0));
    let mut connections = Vec::new();
    for _ in 0..TASKS {
        connections.push(PgConnection::connect(url).await?);
    }
    let watch = Stopwatch::started();
    let mut running = JoinSet::new();
    for conn in connections {
        running.spawn(task(conn, Arc::clone(&next), batches));
    }
    while let Some(task) = running.join_next().await {
        task.context("a task panicked")??;
    }
    Ok(Done::new(batches * BATCH * STEPS_PER_SAGA, watch.elapsed()))
}

async fn task(mut conn: PgConnection, next: Arc<AtomicU32>, batches: u32) -> Result<()> {
    let (outputs, amounts) = (vec![OUTPUT; BATCH as usize], vec![107_i64; BATCH as usize]);
    loop {
        let batch = next.fetch_add(1, Ordering::Relaxed);
        if batch >= batches {
            return Ok(conn.close().await?);
        }
        let sagas: Vec<i64> = (batch * BATCH..(batch + 1) * BATCH).map(i64::from).collect();
        for (name, sql) in STEPS {
            let steps = sqlx::query(sql).bind(name).bind(&outputs).bind(&sagas).bind(&amounts);
            steps.execute(&mut conn).await?;
        }
    }
}
