//! Work.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use saga_core::store::{
    ClaimRequest, Claimed, DefinitionId, Lease, MemberId, ShareRequest, StoreError, Timestamp, Work, WorkId, WorkRef,
};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::clock::{Moment, duration, micros};
use crate::error::{Commits, misuse, store_error};
use crate::rows::rows::{self, signed};
use crate::store::store::PostgresStore;

#[async_trait]
impl Work for PostgresStore {
    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        if !self.autocommits() {
            let store = self.clone();
            return self
                .in_transaction("claim", move |conn| {
                    Box::pin(async move { store.claim_on(conn, &request, Commits::Later).await })
                })
                .await;
        }
        let mut conn = self.acquire("claim").await?;
        let claimed = self.claim_on(&mut conn, &request, Commits::AtOnce).await;
        conn.release_if_usable(&claimed);
        claimed
    }

    async fn claim_shares(&self, request: ShareRequest) -> Result<Claimed, StoreError> {
        if !self.autocommits() {
            let store = self.clone();
            return self
                .in_transaction("claim_shares", move |conn| {
                    Box::pin(async move { store.claim_shares_on(conn, &request, Commits::Later).await })
                })
                .await;
        }
        let mut conn = self.acquire("claim_shares").await?;
        let claimed = self.claim_shares_on(&mut conn, &request, Commits::AtOnce).await;
        conn.release_if_usable(&claimed);
        claimed
    }

    async fn renew(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        let sql =
            "UPDATE {schema}.work w SET owner = $3, leased_until = clock_timestamp() + $4 * interval '1 microsecond'";
        let query = sqlx::query(self.sql(&for_each(sql)));
        let (ids, epochs) = columns(work);
        let rows = self.write_rows("renew", query.bind(ids).bind(epochs).bind(lease.owner.0).bind(micros(lease.ttl)));
        held("renew", work, &rows.await?)
    }

    async fn begin(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        // A row that waits was not begun by an owner that vanished.
        let sql = "UPDATE {schema}.work w SET owner = $3, \
             leased_until = clock_timestamp() + $4 * interval '1 microsecond', \
             suspect = w.suspect AND w.waiting IS DISTINCT FROM w.epoch, waiting = NULL";
        let query = sqlx::query(self.sql(&for_each(sql)));
        let (ids, epochs) = columns(work);
        let rows = self.write_rows("begin", query.bind(ids).bind(epochs).bind(lease.owner.0).bind(micros(lease.ttl)));
        held("begin", work, &rows.await?)
    }

    async fn release_work(&self, work: &[WorkRef]) -> Result<Vec<bool>, StoreError> {
        let sql = "UPDATE {schema}.work w SET owner = NULL, leased_until = NULL, epoch = w.epoch + 1, \
             waiting = CASE WHEN w.waiting = w.epoch THEN w.epoch + 1 END";
        let (ids, epochs) = columns(work);
        let query = sqlx::query(self.sql(&for_each(sql))).bind(ids).bind(epochs);
        held("release_work", work, &self.write_rows("release_work", query).await?)
    }

    async fn release_unbegun(&self, owner: MemberId) -> Result<u64, StoreError> {
        let sql = self.sql(
            "WITH unbegun AS MATERIALIZED (SELECT w.id FROM {schema}.work w \
                 WHERE w.owner = $1 AND w.waiting = w.epoch ORDER BY w.id FOR UPDATE SKIP LOCKED) \
             UPDATE {schema}.work w SET owner = NULL, leased_until = NULL, epoch = w.epoch + 1, waiting = w.epoch + 1 \
             FROM unbegun u WHERE w.id = u.id",
        );
        self.execute("release_unbegun", sqlx::query(sql).bind(owner.0).persistent(false)).await
    }

    async fn begin_attempt(&self, work: WorkRef, attempt: u32) -> Result<bool, StoreError> {
        let sql = self.sql("UPDATE {schema}.work SET attempts = $3 WHERE id = $1 AND epoch = $2");
        let query = sqlx::query(sql).bind(work.id.0).bind(signed(work.epoch)).bind(i64::from(attempt));
        Ok(self.execute("begin_attempt", query).await? == 1)
    }

    async fn report(
        &self,
        work: WorkRef,
        number: u64,
        progress: &[u8],
        lease: Option<Lease>,
    ) -> Result<bool, StoreError> {
        let sql = self.sql(
            "UPDATE {schema}.work SET report = $3, reported_at = clock_timestamp(), progress = $4, \
             owner = coalesce($5, owner), \
             leased_until = coalesce(clock_timestamp() + $6 * interval '1 microsecond', leased_until) \
             WHERE id = $1 AND epoch = $2 AND coalesce(report, 0) <= $3",
        );
        let query = sqlx::query(sql).bind(work.id.0).bind(signed(work.epoch)).bind(signed(number));
        let query = query.bind(progress.to_vec());
        let query = query.bind(lease.map(|lease| lease.owner.0)).bind(lease.map(|lease| micros(lease.ttl)));
        Ok(self.execute("report", query).await? == 1)
    }

    async fn note_late(&self, work: WorkId, output: &[u8]) -> Result<bool, StoreError> {
        // Two calls of one step key have one effect outside, so the first report is kept.
        let sql = self.sql("UPDATE {schema}.work SET late = coalesce(late, $2) WHERE id = $1");
        Ok(self.execute("note_late", sqlx::query(sql).bind(work.0).bind(output.to_vec())).await? == 1)
    }

    async fn backlog(&self) -> Result<(u64, Option<Duration>), StoreError> {
        let sql = "SELECT count(*), (extract(epoch FROM clock_timestamp() - min(w.due_at)) * 1000000)::bigint \
             FROM {schema}.work w WHERE w.owner IS NULL OR w.leased_until <= clock_timestamp() OR NOT EXISTS ( \
                 SELECT 1 FROM {schema}.members m WHERE m.id = w.owner AND m.alive_until > clock_timestamp())";
        let rows = self.read_rows("backlog", sqlx::query(self.sql(sql))).await?;
        let read = |row: &PgRow| Ok((rows::unsigned(row, 0)?, row.try_get::<Option<i64>, _>(1)?));
        let (waiting, overdue) =
            rows.first().map(read).transpose().map_err(|e| store_error("backlog", e))?.unwrap_or_default();
        Ok((waiting, overdue.filter(|micros| *micros >= 0).map(duration)))
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let rows = self.read_rows("now", sqlx::query(self.sql("SELECT clock_timestamp()"))).await?;
        let row = rows.first().ok_or_else(|| misuse("now", "the server returned no time"))?;
        row.try_get(0).map(|Moment(now)| now).map_err(|error| store_error("now", error))
    }

    async fn unknown_work(&self, known: &[DefinitionId]) -> Result<Vec<(DefinitionId, u64)>, StoreError> {
        let sql = "SELECT d.name, d.version, count(*) FROM {schema}.work w \
             JOIN {schema}.definitions d ON d.id = w.definition GROUP BY d.name, d.version ORDER BY d.name, d.version";
        let rows = self.read_rows("unknown_work", sqlx::query(self.sql(sql))).await?;
        let read = |row: &PgRow| {
            let definition = DefinitionId { name: rows::text(row, 0)?.into(), version: rows::narrow(row, 1)? };
            Ok::<_, sqlx::Error>((definition, rows::unsigned(row, 2)?))
        };
        let counts =
            rows.iter().map(read).collect::<Result<Vec<_>, _>>().map_err(|e| store_error("unknown_work", e))?;
        Ok(counts.into_iter().filter(|(definition, _)| !known.contains(definition)).collect())
    }
}

/// A write to each of some rows that still have their epoch. The rows are locked in the order of their ids, so that two
/// such calls never wait for each other.
fn for_each(update: &str) -> String {
    format!(
        "WITH held AS MATERIALIZED (SELECT w.id, u.epoch FROM unnest($1::bigint[], $2::bigint[]) u (id, epoch) \
         CROSS JOIN LATERAL (SELECT w.id FROM {{schema}}.work w WHERE w.id = u.id AND w.epoch = u.epoch FOR UPDATE) w) \
         {update} FROM held h WHERE w.id = h.id RETURNING h.id, h.epoch"
    )
}

/// Ids and epochs, sorted by id.
fn columns(work: &[WorkRef]) -> (Vec<i64>, Vec<i64>) {
    let mut work = work.to_vec();
    work.sort_unstable_by_key(|work| work.id);
    work.iter().map(|work| (work.id.0, signed(work.epoch))).unzip()
}

/// Which of the requested rows were written.
fn held(operation: &'static str, asked: &[WorkRef], rows: &[PgRow]) -> Result<Vec<bool>, StoreError> {
    let read = |row: &PgRow| Ok(WorkRef { id: WorkId(row.try_get(0)?), epoch: rows::unsigned(row, 1)? });
    let written = rows.iter().map(read).collect::<Result<HashSet<_>, _>>();
    let written = written.map_err(|error| store_error(operation, error))?;
    Ok(asked.iter().map(|work| written.contains(work)).collect())
}
