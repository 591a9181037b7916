//! Sagas.

use std::collections::HashMap;

use async_trait::async_trait;
use saga_core::env::BoxFuture;
use saga_core::key::{Key, Tenant};
use saga_core::store::{
    AuditFilter, AuditRow, DefinitionId, HistoryEntry, HistoryKind, NewSaga, SagaFilter, SagaId, SagaProgress, SagaRow,
    SagaWithSteps, Sagas, Started, Status, StepRecord, StoreError, StoreErrorKind, Timestamp, WorkStatus,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use crate::clock::micros;
use crate::error::{Commits, store_error};
use crate::rows::arrays::StartArrays;
use crate::rows::definition_numbers::Numbers;
use crate::rows::rows::{self, FromRow, SELECT_RECORDS, SELECT_SAGAS, WORK_COLUMNS, select_work};
use crate::store::connection::Sql;
use crate::store::lock_wait::LockWait;
use crate::store::store::PostgresStore;

#[async_trait]
impl Sagas for PostgresStore {
    async fn start(&self, sagas: Vec<NewSaga>) -> Result<Vec<Started>, StoreError> {
        if sagas.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<_> = sagas.iter().flat_map(definitions_of).collect();
        if self.autocommits() {
            let mut conn = self.acquire("start").await?;
            let numbers =
                self.number_definitions(&mut conn, "start", wanted.into_iter(), LockWait::Short, true).await?;
            let started = self.start_on(&mut conn, "start", &sagas, &numbers, LockWait::Short, Commits::AtOnce).await;
            conn.release_if_usable(&started);
            return started;
        }
        let store = self.clone();
        let started = self.in_transaction("start", move |conn| -> BoxFuture<'_, _> {
            Box::pin(async move {
                let numbers =
                    store.number_definitions(conn, "start", wanted.into_iter(), LockWait::Short, false).await?;
                let started = store.start_on(conn, "start", &sagas, &numbers, LockWait::Short, Commits::Later).await?;
                Ok((started, numbers))
            })
        });
        let (started, numbers) = started.await?;
        self.remember_definitions(&numbers);
        Ok(started)
    }

    async fn saga(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaRow>, StoreError> {
        let query = sqlx::query(self.saga_by_key()).bind(tenant.as_str().to_owned()).bind(key.as_str().to_owned());
        let rows = self.read_rows("saga", query).await?;
        rows.first().map(SagaRow::from_row).transpose().map_err(|error| store_error("saga", error))
    }

    async fn saga_with_steps(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaWithSteps>, StoreError> {
        let (store, tenant, key) = (self.clone(), tenant.clone(), key.clone());
        // Several statements that must see one state.
        self.in_transaction("saga_with_steps", move |conn| -> BoxFuture<'_, _> {
            Box::pin(async move {
                let failed = |error| store_error("saga_with_steps", error);
                sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                    .persistent(false)
                    .execute(&mut *conn)
                    .await
                    .map_err(failed)?;
                store.whole(conn, &tenant, &key).await.map_err(failed)
            })
        })
        .await
    }

    async fn sagas_by_id(&self, ids: &[SagaId]) -> Result<Vec<SagaRow>, StoreError> {
        let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        let query = sqlx::query(self.sql(&format!("{SELECT_SAGAS} WHERE s.id = ANY ($1)"))).bind(ids);
        let rows = self.read_rows("sagas_by_id", query).await?;
        rows.iter().map(SagaRow::from_row).collect::<Result<_, _>>().map_err(|error| store_error("sagas_by_id", error))
    }

    async fn progress(&self, ids: &[SagaId]) -> Result<Vec<SagaProgress>, StoreError> {
        let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        let query =
            sqlx::query(self.sql("SELECT id, status, version FROM {schema}.progress WHERE id = ANY ($1)")).bind(ids);
        let rows = self.read_rows("progress", query).await?;
        let read = |row: &PgRow| -> Result<SagaProgress, sqlx::Error> {
            let status = rows::parsed(row, 1, Status::parse)?;
            Ok(SagaProgress { saga: SagaId(row.try_get(0)?), status, version: rows::unsigned(row, 2)? })
        };
        rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| store_error("progress", error))
    }

    async fn list(&self, filter: &SagaFilter) -> Result<Vec<SagaRow>, StoreError> {
        let after = filter.after.map_or(i64::MIN, |after| after.0);
        // Few sagas have not ended, and an index leads to them. All others are read by id: the empty text beside the
        // tenant hides it from the planner, because sorting all of a tenant's sagas for each page would be slower.
        let condition = if filter.failing.is_some() {
            "WHERE p.id IN (SELECT w.saga FROM {schema}.work w WHERE w.retrying_since IS NOT NULL \
             AND (w.attempts >= $7 OR w.retrying_since <= clock_timestamp() - $8 * interval '1 microsecond')) \
             AND s.tenant = $1 AND p.id > $2 AND ($3::text IS NULL OR p.status = $3) \
             AND ($4::text IS NULL OR d.name = $4) \
             AND NOT ($6 AND position('>' IN s.key) > 0) ORDER BY p.id LIMIT $5"
        } else if filter.status.is_some_and(|status| !status.is_ended()) {
            "WHERE p.ended_at IS NULL AND p.status = $3 AND s.tenant = $1 AND p.id > $2 \
             AND ($4::text IS NULL OR d.name = $4) \
             AND NOT ($6 AND position('>' IN s.key) > 0) ORDER BY p.id LIMIT $5"
        } else {
            "WHERE s.tenant || '' = $1 AND s.id > $2 AND ($3::text IS NULL OR p.status = $3) \
             AND ($4::text IS NULL OR d.name = $4) \
             AND NOT ($6 AND position('>' IN s.key) > 0) ORDER BY s.id LIMIT $5"
        };
        let query = sqlx::query(self.sql(&format!("{SELECT_SAGAS}{condition}")))
            .bind(filter.tenant.as_str().to_owned())
            .bind(after)
            .bind(filter.status.map(Status::as_str))
            .bind(filter.definition.clone())
            .bind(rows::limit(filter.limit))
            .bind(filter.top_level);
        let query = match filter.failing {
            Some(failing) => query.bind(i64::from(failing.attempts)).bind(micros(failing.retrying_for)),
            None => query,
        };
        let rows = self.read_rows("list", query).await?;
        rows.iter().map(SagaRow::from_row).collect::<Result<_, _>>().map_err(|error| store_error("list", error))
    }

    async fn count(&self, tenant: &Tenant) -> Result<Vec<(Status, u64)>, StoreError> {
        let sql = "SELECT p.status, count(*) FROM {schema}.sagas s JOIN {schema}.progress p ON p.id = s.id \
             WHERE s.tenant = $1 GROUP BY p.status";
        let rows = self.read_rows("count", sqlx::query(self.sql(sql)).bind(tenant.as_str().to_owned())).await?;
        let read = |row: &PgRow| Ok((rows::parsed(row, 0, Status::parse)?, rows::unsigned(row, 1)?));
        rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| store_error("count", error))
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<SagaId>, StoreError> {
        let sql = "SELECT p.id FROM {schema}.progress p WHERE p.ended_at IS NULL AND p.status IN ('running', 'compensating') \
             AND NOT EXISTS (SELECT 1 FROM {schema}.work w WHERE w.saga = p.id AND w.kind <> 'deadline') ORDER BY p.id LIMIT $1";
        let rows = self.read_rows("orphaned", sqlx::query(self.sql(sql)).bind(rows::limit(limit))).await?;
        let read = |row: &PgRow| row.try_get(0).map(SagaId);
        rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| store_error("orphaned", error))
    }

    async fn audit_log(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        let sql = "SELECT h.at, h.step, h.kind, h.attempt, h.detail, h.saga, h.id, s.key \
             FROM {schema}.history h JOIN {schema}.sagas s ON s.id = h.saga \
             WHERE h.kind = 'operator' AND s.tenant = $1 AND h.id < $2 ORDER BY h.id DESC LIMIT $3";
        let query = sqlx::query(self.sql(sql))
            .bind(filter.tenant.as_str().to_owned())
            .bind(filter.before.unwrap_or(i64::MAX))
            .bind(rows::limit(filter.limit));
        let rows = self.read_rows("audit_log", query).await?;
        let read = |row: &PgRow| {
            let (at, entry) = history_entry(SagaId(row.try_get(5)?), row)?;
            Ok(AuditRow { number: row.try_get(6)?, key: rows::key(row, 7)?, at, entry })
        };
        rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| store_error("audit_log", error))
    }
}

/// How often a start is tried again whose key was taken by a saga that is gone.
const START_TRIES: usize = 3;

impl PostgresStore {
    /// Starts sagas by one statement, and reads those whose keys are taken. A saga that is deleted in between has no row:
    /// its key is new now.
    pub(crate) async fn start_on(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        sagas: &[NewSaga],
        numbers: &Numbers,
        lock_wait: LockWait,
        commits: Commits,
    ) -> Result<Vec<Started>, StoreError> {
        let mut started = self.start_once(conn, operation, sagas, numbers, lock_wait, commits).await?;
        for _ in 0..START_TRIES {
            let left: Vec<usize> = (0..sagas.len()).filter(|index| started[*index].is_none()).collect();
            if left.is_empty() {
                break;
            }
            let again: Vec<NewSaga> = left.iter().map(|index| sagas[*index].clone()).collect();
            let answers = self.start_once(conn, operation, &again, numbers, lock_wait, commits).await?;
            for (index, answer) in left.into_iter().zip(answers) {
                started[index] = answer;
            }
        }
        let gone = || {
            let detail =
                "a key is taken, but the saga that has it does not exist; it was deleted again and again, or by hand";
            StoreError::new(StoreErrorKind::Corrupt, operation, detail)
        };
        started.into_iter().map(|started| started.ok_or_else(gone)).collect()
    }

    async fn start_once(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        sagas: &[NewSaga],
        numbers: &Numbers,
        lock_wait: LockWait,
        commits: Commits,
    ) -> Result<Vec<Option<Started>>, StoreError> {
        // Two calls that insert the same keys in different orders would wait for each other.
        let mut first: HashMap<(&Tenant, &Key), usize> = HashMap::with_capacity(sagas.len());
        for (index, saga) in sagas.iter().enumerate() {
            first.entry((&saga.tenant, &saga.key)).or_insert(index);
        }
        let mut order: Vec<usize> = first.into_values().collect();
        order.sort_by_key(|index| (&sagas[*index].tenant, &sagas[*index].key));
        let arrays = StartArrays::new(order.iter().map(|index| &sagas[*index]), operation, numbers)?;
        let new = arrays
            .query(self, lock_wait)
            .persistent(self.prepares_statements())
            .fetch_one(&mut *conn)
            .await
            .map_err(|error| commits.failed(operation, error))?;
        let new: Vec<i64> = new.try_get(0).map_err(|error| commits.failed_behind(store_error(operation, error)))?;
        // Of several sagas with one key the first is the new one.
        let is_new = |index: usize| order.contains(&index) && new.contains(&sagas[index].id.0);
        let mut started: Vec<Option<Started>> = Vec::with_capacity(sagas.len());
        started.extend((0..sagas.len()).map(|index| is_new(index).then_some(Started::New)));
        let known: Vec<usize> = (0..sagas.len()).filter(|index| started[*index].is_none()).collect();
        let holders = self.known_sagas(conn, operation, known.iter().map(|index| &sagas[*index])).await;
        for row in holders.map_err(|error| commits.failed_behind(error))? {
            for index in &known {
                if sagas[*index].tenant == row.tenant && sagas[*index].key == row.key {
                    started[*index] = Some(Started::AlreadyExists(Box::new(row.clone())));
                }
            }
        }
        Ok(started)
    }

    /// The sagas that have these keys.
    pub(crate) async fn known_sagas(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        sagas: impl Iterator<Item = &NewSaga>,
    ) -> Result<Vec<SagaRow>, StoreError> {
        let (tenants, keys): (Vec<&str>, Vec<&str>) =
            sagas.map(|saga| (saga.tenant.as_str(), saga.key.as_str())).unzip();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "{SELECT_SAGAS} JOIN (SELECT DISTINCT * FROM unnest($1::text[], $2::text[]) u (tenant, key)) u \
             ON u.tenant = s.tenant AND u.key = s.key"
        );
        let rows = sqlx::query(self.sql(&sql)).bind(tenants).bind(keys).persistent(false).fetch_all(conn).await;
        let rows = rows.map_err(|error| store_error(operation, error))?;
        rows.iter().map(SagaRow::from_row).collect::<Result<_, _>>().map_err(|error| store_error(operation, error))
    }

    /// Sagas by their ids, on this connection.
    pub(crate) async fn sagas_on(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        ids: &[SagaId],
    ) -> Result<Vec<SagaRow>, StoreError> {
        let rows = self.saga_rows(conn, ids).await;
        let read = |rows: Vec<PgRow>| rows.iter().map(SagaRow::from_row).collect::<Result<_, _>>();
        rows.and_then(read).map_err(|error| store_error(operation, error))
    }

    /// The same, as the server returns them.
    pub(crate) async fn saga_rows(&self, conn: &mut PgConnection, ids: &[SagaId]) -> Result<Vec<PgRow>, sqlx::Error> {
        let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        let query = sqlx::query(self.sql("SELECT * FROM {schema}.sagas_by_id($1)")).bind(ids);
        query.persistent(self.prepares_statements()).fetch_all(conn).await
    }

    pub(crate) fn saga_by_key(&self) -> Sql {
        self.sql(&format!("{SELECT_SAGAS} WHERE s.tenant = $1 AND s.key = $2"))
    }

    async fn whole(
        &self,
        conn: &mut PgConnection,
        tenant: &Tenant,
        key: &Key,
    ) -> Result<Option<SagaWithSteps>, sqlx::Error> {
        let row = sqlx::query(self.saga_by_key()).bind(tenant.as_str()).bind(key.as_str()).persistent(false);
        let Some(row) = row.fetch_optional(&mut *conn).await? else { return Ok(None) };
        let saga = SagaRow::from_row(&row)?;
        let records =
            self.sql(&format!("{SELECT_RECORDS} WHERE r.tenant = $1 AND r.key = $2 ORDER BY r.position, r.step"));
        let records = sqlx::query(records)
            .bind(tenant.as_str())
            .bind(key.as_str())
            .persistent(false)
            .fetch_all(&mut *conn)
            .await?;
        let history =
            self.sql("SELECT at, step, kind, attempt, detail FROM {schema}.history WHERE saga = $1 ORDER BY id");
        let history = sqlx::query(history).bind(saga.id.0).persistent(false).fetch_all(&mut *conn).await?;
        let work = self.sql(&select_work(&format!("{WORK_COLUMNS}, clock_timestamp()"), "= $1"));
        let work = sqlx::query(work).bind(saga.id.0).persistent(false).fetch_all(&mut *conn).await?;
        let read_at = work.first().map(|row| rows::moment(row, 14)).transpose()?;
        Ok(Some(SagaWithSteps {
            read_at: read_at.unwrap_or(saga.advanced_at),
            records: records.iter().map(StepRecord::from_row).collect::<Result<_, _>>()?,
            history: history.iter().map(|row| history_entry(saga.id, row)).collect::<Result<_, _>>()?,
            work: work.iter().map(WorkStatus::from_row).collect::<Result<_, _>>()?,
            saga,
        }))
    }
}

/// The definitions to which a start refers.
pub(crate) fn definitions_of(saga: &NewSaga) -> Vec<DefinitionId> {
    let commands = saga.commands.iter().map(|command| command.definition.clone());
    std::iter::once(saga.definition.clone()).chain(commands).collect()
}

pub(crate) fn history_entry(saga: SagaId, row: &PgRow) -> Result<(Timestamp, HistoryEntry), sqlx::Error> {
    let step: Option<&str> = row.try_get(1)?;
    let entry = HistoryEntry {
        saga,
        step: step.map(saga_core::store::StepId::from_stored),
        kind: rows::parsed(row, 2, HistoryKind::parse)?,
        attempt: rows::narrow(row, 3)?,
        detail: row.try_get(4)?,
    };
    Ok((rows::moment(row, 0)?, entry))
}
