//! The walk through hosted steps that no message has closed.

use std::time::Duration;

use saga_core::key::{Key, Tenant};
use saga_core::store::{DefinitionId, KnownSaga, StoreError, Unclosed, UnclosedFilter, UnclosedStep};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::clock::micros;
use crate::error::{conflict, store_error};
use crate::rows::rows::{self, FromRow, signed};
use crate::store::store::PostgresStore;

/// Takes the next part of the walk, if the lease has the epoch `$1`. The first row says only whether there is more behind it,
/// and what became of the lease is told by its absence.
const NEXT_PART: &str = "WITH walk AS MATERIALIZED ( \
         SELECT m.walked_to, m.walk_ended_at, m.walked_to IS NOT NULL OR m.walk_ended_at IS NULL \
             OR m.walk_ended_at <= clock_timestamp() - $2 * interval '1 microsecond' AS may_go_on \
         FROM {schema}.maintenance m WHERE m.name = 'purge' AND m.epoch = $1 FOR UPDATE), \
     part AS MATERIALIZED ( \
         SELECT s.id, s.tenant, s.key, s.definition FROM walk w CROSS JOIN LATERAL ( \
             SELECT s.id, s.tenant, s.key, s.definition FROM {schema}.sagas s \
             WHERE s.id > coalesce(w.walked_to, $3) ORDER BY s.id LIMIT $4) s WHERE w.may_go_on), \
     place AS MATERIALIZED (SELECT CASE WHEN count(*) = $4 THEN max(id) END AS last FROM part), \
     moved AS ( \
         UPDATE {schema}.maintenance m SET walked_to = p.last, \
             walk_ended_at = CASE WHEN p.last IS NULL THEN clock_timestamp() ELSE w.walk_ended_at END \
         FROM walk w, place p WHERE m.name = 'purge' AND w.may_go_on) \
     SELECT p.last IS NOT NULL, NULL::text, NULL::text, NULL::text, NULL::bigint, NULL::bytea, NULL::bigint \
     FROM walk w, place p \
     UNION ALL \
     SELECT NULL, s.tenant, s.key, d.name, d.version::bigint, p.state, \
         (extract(epoch FROM clock_timestamp() - p.ended_at) * 1000000)::bigint \
     FROM part s JOIN {schema}.definitions d ON d.id = s.definition JOIN {schema}.progress p ON p.id = s.id \
     WHERE p.ended_at <= clock_timestamp() - $2 * interval '1 microsecond' AND p.expires_at IS NULL \
       AND octet_length(p.state) > 0 AND (d.name, d.version) IN ( \
           SELECT n.name, n.version FROM unnest($5::text[], $6::bigint[]) n (name, version))";

/// The next part of the walk.
pub(crate) async fn next_part(
    store: &PostgresStore,
    epoch: u64,
    filter: &UnclosedFilter,
) -> Result<Unclosed, StoreError> {
    let (names, versions): (Vec<String>, Vec<i64>) =
        filter.definitions.iter().map(|id| (id.name.to_string(), i64::from(id.version))).unzip();
    let query = sqlx::query(store.sql(NEXT_PART))
        .bind(signed(epoch))
        .bind(micros(filter.interval))
        .bind(i64::MIN)
        .bind(rows::limit(filter.limit))
        .bind(names)
        .bind(versions);
    let found = store.write_rows("unclosed", query).await?;
    let (first, steps): (Vec<PgRow>, Vec<PgRow>) =
        found.into_iter().partition(|row| row.try_get::<Option<bool>, _>(0).is_ok_and(|more| more.is_some()));
    let Some(first) = first.first() else {
        return Err(conflict("unclosed", "another process has the lease of the maintenance task"));
    };
    let read = || Ok(Unclosed { steps: steps.iter().map(step).collect::<Result<_, _>>()?, more: first.try_get(0)? });
    read().map_err(|error| store_error("unclosed", error))
}

/// Which of these sagas there are.
pub(crate) async fn known_sagas(
    store: &PostgresStore,
    tenant: &Tenant,
    keys: &[Key],
) -> Result<Vec<KnownSaga>, StoreError> {
    let sql = "SELECT s.key, octet_length(p.state) = 0 FROM (SELECT DISTINCT unnest($2::text[]) AS key) k \
         CROSS JOIN LATERAL (SELECT s.id, s.key FROM {schema}.sagas s WHERE s.tenant = $1 \
             AND s.key = k.key COLLATE \"C\" OFFSET 0) s \
         JOIN {schema}.progress p ON p.id = s.id";
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let query = sqlx::query(store.sql(sql)).bind(tenant.as_str().to_owned()).bind(keys);
    let found = store.read_rows("known", query).await?;
    found.iter().map(KnownSaga::from_row).collect::<Result<_, _>>().map_err(|error| store_error("known", error))
}

fn step(row: &PgRow) -> Result<UnclosedStep, sqlx::Error> {
    Ok(UnclosedStep {
        tenant: rows::tenant(row, 1)?,
        key: rows::key(row, 2)?,
        definition: DefinitionId { name: rows::text(row, 3)?.into(), version: rows::narrow(row, 4)? },
        state: row.try_get(5)?,
        ended_ago: Duration::from_micros(rows::unsigned(row, 6)?),
    })
}

impl FromRow for KnownSaga {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self { key: rows::key(row, 0)?, is_tombstone: row.try_get(1)? })
    }
}
