//! A sample of the sagas that have not ended.

use std::collections::{BTreeMap, HashMap};

use rusqlite::Connection;
use saga_core::store::{DefinitionId, SagaId, SagaRow, SagaWithSteps, Timestamp, WorkStatus, oldest_and_newest};

use crate::statements::rows::{self, FromRow, select_sagas};

/// How many of the oldest, and of the newest, sagas of each status are looked at.
const LOOKED_AT_MAX: usize = 2_000;

/// The ids of the oldest and of the newest sagas of a status, with their definitions.
const OPEN: &str = "SELECT s.id, d.name, d.version FROM (\
     SELECT id FROM (SELECT id FROM saga_progress WHERE ended_at IS NULL AND status = ?1 ORDER BY id LIMIT ?2) UNION \
     SELECT id FROM (SELECT id FROM saga_progress WHERE ended_at IS NULL AND status = ?1 ORDER BY id DESC LIMIT ?2)\
     ) p JOIN saga_sagas s ON s.id = p.id JOIN saga_definitions d ON d.id = s.definition";

/// Sagas of these definitions that go on without an operator, with their records and their work.
pub(crate) fn unfinished(
    conn: &Connection,
    definitions: &[DefinitionId],
    limit: usize,
    read_at: Timestamp,
) -> rusqlite::Result<Vec<SagaWithSteps>> {
    let mut open: BTreeMap<DefinitionId, Vec<SagaId>> = definitions.iter().map(|id| (id.clone(), Vec::new())).collect();
    let mut statement = conn.prepare_cached(OPEN)?;
    for status in ["running", "compensating", "paused"] {
        let mut found = statement.query((status, rows::limit(LOOKED_AT_MAX)))?;
        while let Some(row) = found.next()? {
            let id = DefinitionId { name: rows::text(row, 1)?.into(), version: row.get(2)? };
            if let Some(open) = open.get_mut(&id) {
                open.push(SagaId(row.get(0)?));
            }
        }
    }
    let mut ids: Vec<SagaId> = open.into_values().flat_map(|ids| oldest_and_newest(ids, limit)).collect();
    ids.sort();
    let mut work = work_of(conn, &ids)?;
    let mut read = conn.prepare_cached(select_sagas!("WHERE s.id = ?1"))?;
    let whole = |id: &SagaId| {
        let saga = read.query_row([id.0], SagaRow::from_row)?;
        let records = rows::records_of_steps(conn, saga.tenant.as_str(), saga.key.as_str())?;
        let work = work.remove(id).unwrap_or_default();
        Ok(SagaWithSteps { saga, records, history: Vec::new(), work, read_at })
    };
    ids.iter().map(whole).collect()
}

/// The work rows of these sagas. No index leads from a saga to its work, so one pass finds all of them.
fn work_of(conn: &Connection, ids: &[SagaId]) -> rusqlite::Result<HashMap<SagaId, Vec<WorkStatus>>> {
    let mut work: HashMap<SagaId, Vec<WorkStatus>> = HashMap::new();
    if ids.is_empty() {
        return Ok(work);
    }
    let mut statement = conn.prepare_cached(
        "SELECT id, kind, step, attempts, due_at, owner, retrying_since, error, epoch, maybe, payload, report, \
         reported_at, progress, saga FROM saga_work WHERE saga IN (SELECT value FROM json_each(?1)) ORDER BY id",
    )?;
    let list = format!("[{}]", ids.iter().map(|id| id.0.to_string()).collect::<Vec<_>>().join(","));
    let mut found = statement.query([list])?;
    while let Some(row) = found.next()? {
        work.entry(SagaId(row.get(14)?)).or_default().push(WorkStatus::from_row(row)?);
    }
    Ok(work)
}
