//! A sample of the sagas that have not ended.

use std::collections::{BTreeMap, HashMap};

use saga_core::key::{Key, Tenant};
use saga_core::store::{
    DefinitionId, SagaId, SagaRow, SagaWithSteps, StepRecord, StoreError, Work as _, WorkStatus, oldest_and_newest,
};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Row as _};

use crate::error::store_error;
use crate::rows::rows::{self, FromRow, SELECT_RECORDS, SELECT_SAGAS, WORK_COLUMNS, select_work};
use crate::store::records::OF_STEPS;
use crate::store::store::PostgresStore;

const UNFINISHED: &str = "unfinished";

/// How many of the oldest, and of the newest, sagas of each status are looked at.
const LOOKED_AT_MAX: usize = 2_000;

/// The ids of the oldest and of the newest sagas of each status, with their definitions. The definition of each is looked up by
/// its id: a join would read all sagas.
const OPEN: &str = "SELECT o.id, d.name, d.version FROM (\
     SELECT o.id, (SELECT s.definition FROM {schema}.sagas s WHERE s.id = o.id) AS definition \
     FROM unnest(ARRAY['running', 'compensating', 'paused']) u (status) CROSS JOIN LATERAL (\
     (SELECT p.id FROM {schema}.progress p WHERE p.ended_at IS NULL AND p.status = u.status ORDER BY p.id LIMIT $1) \
     UNION (SELECT p.id FROM {schema}.progress p WHERE p.ended_at IS NULL AND p.status = u.status \
     ORDER BY p.id DESC LIMIT $1)) o) o \
     JOIN {schema}.definitions d ON d.id = o.definition";

impl PostgresStore {
    /// Sagas of these definitions that go on without an operator, with their records and their work. A saga that moves on
    /// meanwhile may have the records of one moment and the work of another.
    pub(crate) async fn sample_unfinished(
        &self,
        definitions: &[DefinitionId],
        limit: usize,
    ) -> Result<Vec<SagaWithSteps>, StoreError> {
        let ids = self.ids_of_unfinished(definitions, limit).await?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let sagas = self.sql(&format!("{SELECT_SAGAS} WHERE s.id = ANY ($1) ORDER BY s.id"));
        let sagas: Vec<SagaRow> = self.unfinished_rows(sqlx::query(sagas).bind(ids.clone()), SagaRow::from_row).await?;
        let mut records = self.records_of_unfinished(&sagas).await?;
        let work = self.sql(&select_work(&format!("{WORK_COLUMNS}, saga"), "IN (SELECT unnest($1))"));
        let read = |row: &PgRow| Ok((row.try_get::<i64, _>(14)?, WorkStatus::from_row(row)?));
        let mut work = by_owner(self.unfinished_rows(sqlx::query(work).bind(ids), read).await?);
        let read_at = self.now().await?;
        let whole = |saga: SagaRow| SagaWithSteps {
            records: records.remove(&(saga.tenant.clone(), saga.key.clone())).unwrap_or_default(),
            history: Vec::new(),
            work: work.remove(&saga.id.0).unwrap_or_default(),
            read_at,
            saga,
        };
        Ok(sagas.into_iter().map(whole).collect())
    }

    async fn ids_of_unfinished(&self, definitions: &[DefinitionId], limit: usize) -> Result<Vec<i64>, StoreError> {
        let read = |row: &PgRow| {
            let id = DefinitionId { name: rows::text(row, 1)?.into(), version: rows::narrow(row, 2)? };
            Ok((id, SagaId(row.try_get(0)?)))
        };
        let open = sqlx::query(self.sql(OPEN)).bind(rows::limit(LOOKED_AT_MAX));
        let mut of_definition: BTreeMap<DefinitionId, Vec<SagaId>> = BTreeMap::new();
        for (id, saga) in self.unfinished_rows(open, read).await? {
            of_definition.entry(id).or_default().push(saga);
        }
        let wanted = of_definition.into_iter().filter(|(id, _)| definitions.contains(id));
        Ok(wanted.flat_map(|(_, ids)| oldest_and_newest(ids, limit)).map(|id| id.0).collect())
    }

    async fn records_of_unfinished(
        &self,
        sagas: &[SagaRow],
    ) -> Result<HashMap<(Tenant, Key), Vec<StepRecord>>, StoreError> {
        let sql = SELECT_RECORDS.replacen(" FROM ", ", r.tenant, r.key FROM ", 1);
        let sql = self.sql(&format!(
            "{sql} JOIN unnest($1::text[], $2::text[]) u (tenant, key) ON u.tenant = r.tenant AND u.key = r.key \
             WHERE true {OF_STEPS} ORDER BY r.position, r.step"
        ));
        let tenants: Vec<String> = sagas.iter().map(|saga| saga.tenant.as_str().to_owned()).collect();
        let keys: Vec<String> = sagas.iter().map(|saga| saga.key.as_str().to_owned()).collect();
        let read = |row: &PgRow| Ok(((rows::tenant(row, 9)?, rows::key(row, 10)?), StepRecord::from_row(row)?));
        Ok(by_owner(self.unfinished_rows(sqlx::query(sql).bind(tenants).bind(keys), read).await?))
    }

    async fn unfinished_rows<T>(
        &self,
        query: Query<'static, Postgres, PgArguments>,
        read: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.read_rows(UNFINISHED, query).await?;
        rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| store_error(UNFINISHED, error))
    }
}

/// What belongs to each saga, in the order of the rows.
fn by_owner<K: std::hash::Hash + Eq, V>(rows: Vec<(K, V)>) -> HashMap<K, Vec<V>> {
    let mut by_owner: HashMap<K, Vec<V>> = HashMap::new();
    for (owner, row) in rows {
        by_owner.entry(owner).or_default().push(row);
    }
    by_owner
}
