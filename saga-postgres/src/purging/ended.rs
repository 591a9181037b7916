//! Gives sagas that ended before another expiry.

use std::time::Duration;

use saga_core::key::{Key, Tenant};
use saga_core::store::{DefinitionId, EndedExpired, ExpireEnded, Expiry, SagaId, StoreError};
use sqlx::Row as _;

use crate::clock::micros;
use crate::error::store_error;
use crate::rows::arrays::Statement;
use crate::rows::expiry::hosts_text;
use crate::rows::rows;
use crate::store::store::PostgresStore;

/// Sets the dates of a saga by its end, from `$1`, the time until it is a tombstone, `$2`, the time until it is deleted, and
/// `$3`, its hosts. A tombstone stays one.
const DATE: &str = "UPDATE {schema}.progress p SET hosts = CASE WHEN octet_length(p.state) > 0 THEN $3 END, \
     expires_at = p.ended_at + CASE WHEN octet_length(p.state) > 0 THEN $1 ELSE $2 END * interval '1 microsecond', \
     delete_at = CASE WHEN octet_length(p.state) > 0 AND $2 > $1 THEN p.ended_at + $2 * interval '1 microsecond' END";

pub(crate) async fn date_saga(
    store: &PostgresStore,
    tenant: &Tenant,
    key: &Key,
    expiry: Option<&Expiry>,
) -> Result<bool, StoreError> {
    let sql = format!(
        "{DATE} WHERE p.ended_at IS NOT NULL \
         AND p.id = (SELECT s.id FROM {{schema}}.sagas s WHERE s.tenant = $4 AND s.key = $5)"
    );
    let query = bind_expiry(sqlx::query(store.sql(&sql)), expiry);
    let query = query.bind(tenant.as_str().to_owned()).bind(key.as_str().to_owned());
    Ok(store.execute("set_expiry", query).await? == 1)
}

pub(crate) async fn date_ended(store: &PostgresStore, request: &ExpireEnded) -> Result<EndedExpired, StoreError> {
    let sql = format!(
        "WITH seen AS MATERIALIZED ( \
             SELECT s.id, d.name = $6 AND d.version = $8 AND position('>' IN s.key) = 0 AS is_meant FROM ( \
                 SELECT s.id, s.key, s.definition FROM {{schema}}.sagas s WHERE s.id > $4 ORDER BY s.id LIMIT $5) s \
             JOIN {{schema}}.definitions d ON d.id = s.definition), \
         dated AS ({DATE} WHERE p.ended_at IS NOT NULL AND p.status = $7 \
             AND p.id = ANY (ARRAY(SELECT id FROM seen WHERE is_meant)) RETURNING 1) \
         SELECT (SELECT count(*) FROM dated), count(*), max(id) FROM seen"
    );
    let query = bind_expiry(sqlx::query(store.sql(&sql)), Some(&request.expiry))
        .bind(request.after.map_or(i64::MIN, |after| after.0))
        .bind(rows::limit(request.limit))
        .bind(request.definition.name.to_string())
        .bind(request.status.as_str())
        .bind(i64::from(request.definition.version));
    let rows = store.write_rows("expire_ended", query).await?;
    let Some(row) = rows.first() else { return Ok(EndedExpired::default()) };
    let read = || {
        let (sagas, seen) = (rows::unsigned(row, 0)?, rows::unsigned(row, 1)?);
        let last = row.try_get::<Option<i64>, _>(2)?.map(SagaId);
        Ok(EndedExpired { sagas, next: last.filter(|_| seen == request.limit as u64) })
    };
    read().map_err(|error| store_error("expire_ended", error))
}

pub(crate) async fn date_hosted(
    store: &PostgresStore,
    definitions: &[DefinitionId],
    closed: &[(Tenant, Key)],
    delete_in: Duration,
) -> Result<u64, StoreError> {
    // `?` is the character behind `>`.
    let sql = "UPDATE {schema}.progress p SET delete_at = NULL, hosts = NULL, \
             expires_at = clock_timestamp() + $1 * interval '1 microsecond' \
         WHERE p.ended_at IS NOT NULL AND p.id = ANY (ARRAY( \
             SELECT s.id FROM unnest($2::text[], $3::text[]) c (tenant, key) CROSS JOIN LATERAL ( \
                 SELECT s.id, s.definition FROM {schema}.sagas s WHERE s.tenant = c.tenant \
                   AND s.key > (c.key || '>') COLLATE \"C\" AND s.key < (c.key || '?') COLLATE \"C\" OFFSET 0) s \
             WHERE s.definition IN (SELECT d.id FROM {schema}.definitions d \
                 JOIN unnest($4::text[], $5::bigint[]) n (name, version) \
                   ON n.name = d.name AND n.version = d.version)))";
    let (tenants, keys): (Vec<String>, Vec<String>) =
        closed.iter().map(|(tenant, key)| (tenant.as_str().to_owned(), key.as_str().to_owned())).unzip();
    let (names, versions): (Vec<String>, Vec<i64>) =
        definitions.iter().map(|id| (id.name.to_string(), i64::from(id.version))).unzip();
    let query = sqlx::query(store.sql(sql)).bind(micros(delete_in)).bind(tenants).bind(keys);
    store.execute("expire_hosted", query.bind(names).bind(versions)).await
}

fn bind_expiry<'q>(query: Statement<'q>, expiry: Option<&Expiry>) -> Statement<'q> {
    query
        .bind(expiry.map(|expiry| micros(expiry.tombstone_in)))
        .bind(expiry.map(|expiry| micros(expiry.delete_in)))
        .bind(expiry.and_then(hosts_text))
}
