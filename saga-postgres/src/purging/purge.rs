//! Purging ended sagas, and what else is kept for a time only.

use std::time::Duration;

use async_trait::async_trait;
use saga_core::key::{Key, Tenant};
use saga_core::store::{
    DefinitionId, EndedExpired, ExpireEnded, ExpiredCount, ExpiredSaga, Expiry, KnownSaga, MemberId, Purge, Purged,
    SagaId, SagaWithSteps, StoreError, Unclosed, UnclosedFilter,
};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::clock::micros;
use crate::error::store_error;
use crate::purging::ended::{date_ended, date_hosted, date_saga};
use crate::purging::purge_sagas::{MESSAGES_MAX, PurgeCall};
use crate::purging::unclosed::{known_sagas, next_part};
use crate::purging::whole_sagas::read_whole_sagas;
use crate::rows::expiry::{hosts, next_age};
use crate::rows::rows::{self, FromRow};
use crate::store::store::PostgresStore;

/// A subquery reads the clock once; as a plain call it could not be compared with an index.
const EXPIRED: &str =
    "p.expires_at <= (SELECT clock_timestamp()) AND p.ended_at IS NOT NULL ORDER BY p.expires_at, p.id";

#[async_trait]
impl Purge for PostgresStore {
    async fn lease_maintenance(&self, owner: MemberId, ttl: Duration) -> Result<Option<u64>, StoreError> {
        let sql = "UPDATE {schema}.maintenance m SET owner = $1, \
                 leased_until = clock_timestamp() + $2 * interval '1 microsecond', \
                 epoch = m.epoch + CASE WHEN m.owner = $1 AND m.leased_until > clock_timestamp() THEN 0 ELSE 1 END \
             WHERE m.name = 'purge' \
               AND EXISTS (SELECT 1 FROM {schema}.members WHERE id = $1 AND alive_until > clock_timestamp()) \
               AND (m.owner IS NULL OR m.owner = $1 OR m.leased_until <= clock_timestamp() OR NOT EXISTS ( \
                   SELECT 1 FROM {schema}.members WHERE id = m.owner AND alive_until > clock_timestamp())) \
             RETURNING m.epoch";
        let query = sqlx::query(self.sql(sql)).bind(owner.0).bind(micros(ttl));
        let rows = self.write_rows("lease_maintenance", query).await?;
        let epoch = rows.first().map(|row| rows::unsigned(row, 0)).transpose();
        epoch.map_err(|error| store_error("lease_maintenance", error))
    }

    async fn expired(&self, limit: usize) -> Result<Vec<ExpiredSaga>, StoreError> {
        let sql = format!(
            "SELECT s.id, s.tenant, s.key, p.version, p.delete_at IS NOT NULL, p.hosts FROM ( \
                 SELECT p.id, p.version, p.delete_at, p.hosts, p.expires_at FROM {{schema}}.progress p \
                 WHERE {EXPIRED} LIMIT $1) p \
             JOIN {{schema}}.sagas s ON s.id = p.id ORDER BY p.expires_at, p.id"
        );
        let rows = self.read_rows("expired", sqlx::query(self.sql(&sql)).bind(rows::limit(limit))).await?;
        rows.iter().map(ExpiredSaga::from_row).collect::<Result<_, _>>().map_err(|error| store_error("expired", error))
    }

    async fn whole_sagas(&self, sagas: &[SagaId]) -> Result<Vec<SagaWithSteps>, StoreError> {
        read_whole_sagas(self, sagas).await
    }

    async fn purge(&self, epoch: u64, sagas: &[ExpiredSaga], retry_interval: Duration) -> Result<Purged, StoreError> {
        PurgeCall::new(self, epoch, retry_interval).purge(sagas).await
    }

    async fn count_expired(&self, limit: usize) -> Result<Vec<ExpiredCount>, StoreError> {
        let sql = format!(
            "SELECT d.name, d.version, e.becomes_tombstone, count(*), sum(octet_length(e.state) + octet_length(s.input) \
                 + r.bytes)::bigint \
             FROM (SELECT p.id, p.state, p.delete_at IS NOT NULL AS becomes_tombstone FROM {{schema}}.progress p \
                 WHERE {EXPIRED} LIMIT $1) e \
             JOIN {{schema}}.sagas s ON s.id = e.id JOIN {{schema}}.definitions d ON d.id = s.definition \
             CROSS JOIN LATERAL (SELECT coalesce(sum(coalesce(octet_length(r.output), 0) \
                 + coalesce(octet_length(r.error), 0) + coalesce(octet_length(r.input), 0)), 0) AS bytes \
                 FROM {{schema}}.records r WHERE r.tenant = s.tenant AND r.key = s.key) r \
             GROUP BY d.name, d.version, e.becomes_tombstone ORDER BY d.name, d.version, e.becomes_tombstone DESC"
        );
        let rows = self.read_rows("count_expired", sqlx::query(self.sql(&sql)).bind(rows::limit(limit))).await?;
        let read = |row: &PgRow| -> Result<ExpiredCount, sqlx::Error> {
            Ok(ExpiredCount {
                definition: DefinitionId { name: rows::text(row, 0)?.into(), version: rows::narrow(row, 1)? },
                next: next_age(row.try_get(2)?),
                sagas: rows::unsigned(row, 3)?,
                bytes: rows::unsigned(row, 4)?,
            })
        };
        rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| store_error("count_expired", error))
    }

    async fn set_expiry(&self, tenant: &Tenant, key: &Key, expiry: Option<&Expiry>) -> Result<bool, StoreError> {
        date_saga(self, tenant, key, expiry).await
    }

    async fn expire_ended(&self, request: &ExpireEnded) -> Result<EndedExpired, StoreError> {
        date_ended(self, request).await
    }

    async fn expire_hosted(
        &self,
        definitions: &[DefinitionId],
        closed: &[(Tenant, Key)],
        delete_in: Duration,
    ) -> Result<u64, StoreError> {
        date_hosted(self, definitions, closed, delete_in).await
    }

    async fn unclosed(&self, epoch: u64, filter: &UnclosedFilter) -> Result<Unclosed, StoreError> {
        next_part(self, epoch, filter).await
    }

    async fn known(&self, tenant: &Tenant, keys: &[Key]) -> Result<Vec<KnownSaga>, StoreError> {
        known_sagas(self, tenant, keys).await
    }

    async fn forget_dead_letters(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        let sql = "DELETE FROM {schema}.dead_letters WHERE id = ANY (ARRAY( \
                 SELECT l.id FROM {schema}.dead_letters l \
                 WHERE l.decided_at < (SELECT clock_timestamp() - $1 * interval '1 microsecond') AND l.state <> 'open' \
                 ORDER BY l.decided_at LIMIT $2 FOR UPDATE SKIP LOCKED))";
        let query = sqlx::query(self.sql(sql)).bind(micros(older_than)).bind(rows::limit(limit));
        self.execute("forget_dead_letters", query).await
    }

    async fn delete_expired_keys(&self, limit: usize) -> Result<u64, StoreError> {
        self.forget_keys(limit).await
    }

    /// A message that is still in the outbox is as old as the counter of its key, so it is among the oldest. Where more of
    /// these are old than are looked at, nothing is deleted.
    async fn forget_published(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        let sql = "WITH oldest AS MATERIALIZED ( \
                 SELECT tenant, aggregatetype, aggregateid, committed_at FROM {schema}.outbox ORDER BY seq LIMIT $3), \
             unused AS MATERIALIZED ( \
                 SELECT p.tenant, p.aggregatetype, p.aggregateid FROM ( \
                     SELECT tenant, aggregatetype, aggregateid FROM {schema}.published WHERE published_at < \
                         (SELECT clock_timestamp() - $1 * interval '1 microsecond' - interval '1 hour') \
                     ORDER BY published_at LIMIT $2 + $3 FOR UPDATE SKIP LOCKED) p \
                 WHERE (SELECT count(*) FROM oldest \
                       WHERE committed_at <= clock_timestamp() - $1 * interval '1 microsecond') < $3 \
                   AND NOT EXISTS (SELECT 1 FROM oldest o WHERE o.tenant = p.tenant \
                       AND o.aggregatetype = p.aggregatetype AND o.aggregateid = p.aggregateid) LIMIT $2) \
             DELETE FROM {schema}.published p USING unused u WHERE p.tenant = u.tenant \
               AND p.aggregatetype = u.aggregatetype AND p.aggregateid = u.aggregateid";
        let query = sqlx::query(self.sql(sql)).bind(micros(older_than)).bind(rows::limit(limit)).bind(MESSAGES_MAX);
        self.execute("forget_published", query).await
    }
}

impl FromRow for ExpiredSaga {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: SagaId(row.try_get(0)?),
            tenant: rows::tenant(row, 1)?,
            key: rows::key(row, 2)?,
            version: rows::unsigned(row, 3)?,
            next: next_age(row.try_get(4)?),
            hosts: hosts(row, 5)?,
        })
    }
}
