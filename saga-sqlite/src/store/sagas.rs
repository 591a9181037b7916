//! Sagas.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Row};
use saga_core::key::{Key, Tenant};
use saga_core::store::{
    AuditFilter, AuditRow, HistoryEntry, HistoryKind, NewSaga, SagaFilter, SagaId, SagaProgress, SagaRow,
    SagaWithSteps, Sagas, Started, Status, StoreError, Timestamp, WorkStatus,
};

use crate::clock::micros;
use crate::statements::rows::{self, FromRow, select_sagas};
use crate::statements::saga_rows::{by_key, start};
use crate::store::store::SqliteStore;

#[async_trait]
impl Sagas for SqliteStore {
    async fn start(&self, sagas: Vec<NewSaga>) -> Result<Vec<Started>, StoreError> {
        self.call("start", move |session| sagas.iter().map(|saga| start(session, saga)).collect()).await
    }

    async fn saga(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaRow>, StoreError> {
        let (tenant, key) = (tenant.clone(), key.clone());
        self.query("saga", move |conn| by_key(conn, &tenant, &key)).await
    }

    async fn saga_with_steps(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaWithSteps>, StoreError> {
        let (tenant, key, read_at) = (tenant.clone(), key.clone(), self.now());
        self.query("saga_with_steps", move |conn| {
            let Some(saga) = by_key(conn, &tenant, &key)? else { return Ok(None) };
            let records = rows::records_of(conn, tenant.as_str(), key.as_str())?;
            let (history, work) = (history(conn, saga.id)?, work(conn, saga.id)?);
            Ok(Some(SagaWithSteps { saga, records, history, work, read_at }))
        })
        .await
    }

    async fn sagas_by_id(&self, ids: &[SagaId]) -> Result<Vec<SagaRow>, StoreError> {
        let ids = ids.to_vec();
        self.query("sagas_by_id", move |conn| {
            let mut statement = conn.prepare_cached(select_sagas!("WHERE s.id = ?1"))?;
            let rows = ids.iter().map(|id| statement.query_row([id.0], SagaRow::from_row).optional());
            rows.filter_map(Result::transpose).collect()
        })
        .await
    }

    async fn progress(&self, ids: &[SagaId]) -> Result<Vec<SagaProgress>, StoreError> {
        let ids = ids.to_vec();
        self.query("progress", move |conn| {
            let mut statement = conn.prepare_cached("SELECT id, status, version FROM saga_progress WHERE id = ?1")?;
            let read = |row: &Row<'_>| {
                let (status, version) = (rows::status(row, 1)?, rows::unsigned(row, 2)?);
                Ok(SagaProgress { saga: SagaId(row.get(0)?), status, version })
            };
            let rows = ids.iter().map(|id| statement.query_row([id.0], read).optional());
            rows.filter_map(Result::transpose).collect()
        })
        .await
    }

    async fn list(&self, filter: &SagaFilter) -> Result<Vec<SagaRow>, StoreError> {
        let filter = filter.clone();
        let now = self.now();
        self.query("list", move |conn| list(conn, &filter, now)).await
    }

    async fn count(&self, tenant: &Tenant) -> Result<Vec<(Status, u64)>, StoreError> {
        let tenant = tenant.clone();
        self.query("count", move |conn| {
            conn.prepare_cached(
                "SELECT p.status, count(*) FROM saga_sagas s JOIN saga_progress p ON p.id = s.id \
                 WHERE s.tenant = ?1 GROUP BY p.status",
            )?
            .query_map([tenant.as_str()], |row| Ok((rows::status(row, 0)?, rows::unsigned(row, 1)?)))?
            .collect()
        })
        .await
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<SagaId>, StoreError> {
        self.query("orphaned", move |conn| {
            conn.prepare_cached(
                "SELECT id FROM saga_progress WHERE ended_at IS NULL AND status IN ('running', 'compensating') \
                 AND id NOT IN (SELECT saga FROM saga_work WHERE kind <> 'deadline') ORDER BY id LIMIT ?1",
            )?
            .query_map([rows::limit(limit)], |row| row.get(0).map(SagaId))?
            .collect()
        })
        .await
    }

    async fn audit_log(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        let filter = filter.clone();
        self.query("audit_log", move |conn| {
            let act = |row: &Row<'_>| {
                let (at, entry) = history_entry(row)?;
                Ok(AuditRow { number: row.get(6)?, key: rows::key(row, 7)?, at, entry })
            };
            conn.prepare_cached(
                "SELECT h.at, h.step, h.kind, h.attempt, h.detail, h.saga, h.id, s.key \
                 FROM saga_history h JOIN saga_sagas s ON s.id = h.saga \
                 WHERE h.kind = 'operator' AND s.tenant = ?1 AND h.id < ?2 ORDER BY h.id DESC LIMIT ?3",
            )?
            .query_map((filter.tenant.as_str(), filter.before.unwrap_or(i64::MAX), rows::limit(filter.limit)), act)?
            .collect()
        })
        .await
    }
}

fn list(conn: &Connection, filter: &SagaFilter, now: Timestamp) -> rusqlite::Result<Vec<SagaRow>> {
    let after = filter.after.map_or(i64::MIN, |after| after.0);
    let status = filter.status.map(Status::as_str);
    let (tenant, definition, limit) = (filter.tenant.as_str(), filter.definition.as_deref(), rows::limit(filter.limit));
    if let Some(failing) = filter.failing {
        let sql = select_sagas!(
            "WHERE p.id IN (SELECT saga FROM saga_work WHERE retrying_since IS NOT NULL \
             AND (attempts >= ?7 OR retrying_since <= ?8)) AND s.tenant = ?1 AND p.id > ?2 \
             AND (?3 IS NULL OR p.status = ?3) AND (?4 IS NULL OR d.name = ?4) \
             AND NOT (?6 AND instr(s.key, '>')) ORDER BY p.id LIMIT ?5"
        );
        let since = now.0.saturating_sub(micros(failing.retrying_for));
        let parameters = (tenant, after, status, definition, limit, filter.top_level, failing.attempts, since);
        return conn.prepare_cached(sql)?.query_map(parameters, SagaRow::from_row)?.collect();
    }
    // Few sagas have not ended, and an index leads to them. All others are read by id: the plus sign hides the tenant
    // from the planner, because sorting all sagas for each page would be slower.
    let sql = if filter.status.is_some_and(|status| !status.is_ended()) {
        select_sagas!(
            "WHERE p.ended_at IS NULL AND p.status = ?3 AND s.tenant = ?1 AND p.id > ?2 \
             AND (?4 IS NULL OR d.name = ?4) AND NOT (?6 AND instr(s.key, '>')) ORDER BY p.id LIMIT ?5"
        )
    } else {
        select_sagas!(
            "WHERE +s.tenant = ?1 AND s.id > ?2 AND (?3 IS NULL OR p.status = ?3) AND (?4 IS NULL OR d.name = ?4) \
             AND NOT (?6 AND instr(s.key, '>')) ORDER BY s.id LIMIT ?5"
        )
    };
    let parameters = (tenant, after, status, definition, limit, filter.top_level);
    conn.prepare_cached(sql)?.query_map(parameters, SagaRow::from_row)?.collect()
}

pub(crate) fn history(conn: &Connection, saga: SagaId) -> rusqlite::Result<Vec<(Timestamp, HistoryEntry)>> {
    conn.prepare_cached("SELECT at, step, kind, attempt, detail, saga FROM saga_history WHERE saga = ?1 ORDER BY id")?
        .query_map([saga.0], history_entry)?
        .collect()
}

fn history_entry(row: &Row<'_>) -> rusqlite::Result<(Timestamp, HistoryEntry)> {
    let step = if rows::is_set(row, 1)? { Some(rows::step(row, 1)?) } else { None };
    let kind = rows::parsed(row, 2, HistoryKind::parse)?;
    let entry = HistoryEntry { saga: SagaId(row.get(5)?), step, kind, attempt: row.get(3)?, detail: row.get(4)? };
    Ok((Timestamp(row.get(0)?), entry))
}

pub(crate) fn work(conn: &Connection, saga: SagaId) -> rusqlite::Result<Vec<WorkStatus>> {
    conn.prepare_cached(
        "SELECT id, kind, step, attempts, due_at, owner, retrying_since, error, epoch, maybe, payload, \
         report, reported_at, progress \
         FROM saga_work \
         WHERE saga = ?1 ORDER BY id",
    )?
    .query_map([saga.0], WorkStatus::from_row)?
    .collect()
}
