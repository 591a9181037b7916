//! How many bytes a saga takes, and whether the tables grow under a steady load.

use anyhow::{Result, ensure};

use super::database::{self, Due, Purger};
use crate::postgres::work::Work;
use crate::postgres::{saga, workload};

/// How many sagas a period has, and after how many of them the oldest are purged.
const PERIOD: u32 = 10_000;
const PART: u32 = PERIOD / 10;
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
    database::make_due(url, sagas, Due::Tombstone).await?;
    let purger = Purger::new(url).await?;
    let count = purger.all().await?;
    purger.close().await?;
    ensure!(count == sagas as usize, "{count} sagas of {sagas} became tombstones");
    database::vacuum(url, "FULL").await?;
    let tombstone = database::bytes(url).await? as f64 / f64::from(sagas);
    Ok(Bytes { full, tombstone })
}

/// How many times as large the tables are after ten periods as after the first. Each saga is purged one period after its end,
/// and the tables are vacuumed after each purge, as the settings of these tables have autovacuum do more often.
#[expect(clippy::cast_precision_loss, reason = "sizes lie far below 2^52")]
pub(super) async fn growth(url: &str) -> Result<f64> {
    saga_postgres::PostgresStore::connect(url).await?.close().await;
    workload::create(url).await?;
    saga::run(url, Work::Orders, 0..PERIOD, 64).await?;
    let first = database::bytes(url).await?;
    for part in PERIOD / PART..PERIODS * PERIOD / PART {
        database::make_due(url, PART, Due::Deletion).await?;
        let purger = Purger::new(url).await?;
        let count = purger.all().await?;
        purger.close().await?;
        ensure!(count == PART as usize, "{count} sagas of {PART} were purged");
        database::vacuum(url, "ANALYZE").await?;
        saga::run(url, Work::Orders, part * PART..(part + 1) * PART, 64).await?;
    }
    Ok(database::bytes(url).await? as f64 / first.max(1) as f64)
}
