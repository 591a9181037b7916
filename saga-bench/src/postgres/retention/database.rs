//! A database with finished sagas that are due, and how they are purged.

use std::time::Duration;

use anyhow::{Result, ensure};
use saga_core::store::{MemberId, Members as _, Purge as _};
use saga_postgres::PostgresStore;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::postgres::{finished, workload};

/// How many sagas one batch takes.
pub(super) const BATCH: usize = 1_000;
const LEASE_TTL: Duration = Duration::from_mins(10);

/// The tables that sagas leave rows in.
const TABLES: [&str; 4] = ["sagas", "progress", "records", "history"];

/// What is due to become of the sagas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Deletion,
    Tombstone,
}

/// Fills an empty database with so many finished sagas.
pub(super) async fn fill(url: &str, sagas: u32) -> Result<()> {
    workload::create(url).await?;
    finished::fill(url, sagas).await?;
    workload::clear(url).await
}

/// The oldest sagas that have ended are due, so many of them.
pub(super) async fn make_due(url: &str, sagas: u32, due: Due) -> Result<()> {
    let delete_at = match due {
        Due::Deletion => "NULL",
        Due::Tombstone => "clock_timestamp() + interval '100 days'",
    };
    execute(
        url,
        &format!(
            "UPDATE saga.progress SET expires_at = clock_timestamp() - interval '1 day', delete_at = {delete_at} \
             WHERE id IN (SELECT id FROM saga.progress WHERE ended_at IS NOT NULL ORDER BY id LIMIT {sagas})"
        ),
    )
    .await?;
    execute(url, "VACUUM ANALYZE saga.progress").await?;
    execute(url, "CHECKPOINT").await
}

pub(super) async fn execute(url: &str, sql: &str) -> Result<()> {
    let mut conn = PgConnection::connect(url).await?;
    conn.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await?;
    Ok(conn.close().await?)
}

pub(super) async fn number(url: &str, sql: &str) -> Result<i64> {
    let mut conn = PgConnection::connect(url).await?;
    let number = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut conn).await?;
    conn.close().await?;
    Ok(number)
}

/// The bytes of the tables and their indexes.
pub(super) async fn bytes(url: &str) -> Result<i64> {
    let sizes = TABLES.map(|table| format!("pg_total_relation_size('saga.{table}')")).join(" + ");
    number(url, &format!("SELECT ({sizes})::bigint")).await
}

/// What autovacuum does, at once.
pub(super) async fn vacuum(url: &str, how: &str) -> Result<()> {
    for table in TABLES {
        execute(url, &format!("VACUUM ({how}) saga.{table}")).await?;
    }
    Ok(())
}

/// Purges as the maintenance task does, in a process of its own.
pub(super) struct Purger {
    store: PostgresStore,
    member: MemberId,
    epoch: u64,
}

impl Purger {
    pub(super) async fn new(url: &str) -> Result<Self> {
        let store = PostgresStore::connect(url).await?;
        let member = store.join(LEASE_TTL).await?.member;
        let epoch = store.lease_maintenance(member, LEASE_TTL).await?;
        let epoch = epoch.ok_or_else(|| anyhow::anyhow!("another process has the lease of the maintenance task"))?;
        Ok(Self { store, member, epoch })
    }

    /// Purges one batch; answers how many sagas it took.
    pub(super) async fn batch(&self, size: usize) -> Result<usize> {
        let expired = self.store.expired(size).await?;
        let purged = self.store.purge(self.epoch, &expired, LEASE_TTL).await?;
        ensure!(purged.kept.is_empty(), "sagas were kept: {:?}", purged.kept.first());
        Ok(purged.deleted.len() + purged.tombstones.len())
    }

    /// Purges all that is due; answers how much that was.
    pub(super) async fn all(&self) -> Result<usize> {
        let mut purged = 0;
        loop {
            match self.batch(BATCH).await? {
                0 => return Ok(purged),
                some => purged += some,
            }
        }
    }

    /// Gives the lease back, so that the next purger gets it at once.
    pub(super) async fn close(self) -> Result<()> {
        self.store.leave(self.member).await?;
        self.store.close().await;
        Ok(())
    }
}
