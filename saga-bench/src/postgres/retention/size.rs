//! How many bytes a saga takes, and whether the tables grow under a steady load.

use anyhow::{Result, ensure};

use super::database::{self, Due, Purger};
use crate::postgres::work::Work;
use crate::postgres::{saga, workload};

/// How many sagas a period has.
const PERIOD: u32 = 10_000;
const PERIODS: u32 = 10;

/// The bytes that one saga takes, with its part of the indexes.
pub(super) struct Bytes {
    pub(super) full: f64,
    pub(super) tombstone: f64,
}

#[expect(clippy::cast_precision_loss, reason = "sizes lie far below 2^52")]
pub(super) async fn of_one(url: &str, sagas: u32) -> Result<Bytes> {
    database::fill(url, sagas).await?;
    let full = database::bytes(url).await? as f64 / f64::from(sagas);
    database::make_due(url, Due::Tombstone).await?;
    let purger = Purger::new(url).await?;
    let count = purger.all().await?;
    purger.close().await?;
    ensure!(count == sagas as usize, "{count} sagas of {sagas} became tombstones");
    database::vacuum(url, "FULL").await?;
    let tombstone = database::bytes(url).await? as f64 / f64::from(sagas);
    Ok(Bytes { full, tombstone })
}

/// How many times as large the tables are after ten periods as after the first. In each period as many sagas are purged as run.
#[expect(clippy::cast_precision_loss, reason = "sizes lie far below 2^52")]
pub(super) async fn growth(url: &str) -> Result<f64> {
    saga_postgres::PostgresStore::connect(url).await?.close().await;
    workload::create(url).await?;
    let mut first = None;
    let mut last = 0;
    for period in 0..PERIODS {
        let numbers = period * PERIOD..(period + 1) * PERIOD;
        saga::run(url, Work::Orders, numbers, 64).await?;
        last = database::bytes(url).await?;
        first.get_or_insert(last);
        database::make_due(url, Due::Deletion).await?;
        let purger = Purger::new(url).await?;
        purger.all().await?;
        purger.close().await?;
        database::vacuum(url, "ANALYZE").await?;
    }
    Ok(last as f64 / first.unwrap_or(last).max(1) as f64)
}
