//! A saga with its sub-sagas.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension as _, Row};
use saga_core::store::SagaId;

/// A saga of a family.
#[derive(Debug, Clone)]
pub(crate) struct Relative {
    pub(crate) id: SagaId,
    pub(crate) key: String,
    pub(crate) has_ended: bool,
}

impl Relative {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { id: SagaId(row.get(0)?), key: row.get(1)?, has_ended: row.get(2)? })
    }
}

/// The saga of this key, if there is one, and its sub-sagas in the order of their keys.
pub(crate) fn family(conn: &Connection, tenant: &str, key: &str) -> rusqlite::Result<Vec<Relative>> {
    let own = conn
        .prepare_cached(
            "SELECT s.id, s.key, p.ended_at IS NOT NULL FROM saga_sagas s JOIN saga_progress p ON p.id = s.id \
             WHERE s.tenant = ?1 AND s.key = ?2",
        )?
        .query_row((tenant, key), Relative::from_row)
        .optional()?;
    let below = below(conn, tenant, key)?;
    Ok(own.into_iter().chain(below).collect())
}

/// The sagas whose keys begin with this key and `>`, in the order of their keys.
pub(crate) fn below(conn: &Connection, tenant: &str, key: &str) -> rusqlite::Result<Vec<Relative>> {
    // `?` is the character behind `>`.
    conn.prepare_cached(
        "SELECT s.id, s.key, p.ended_at IS NOT NULL FROM saga_sagas s JOIN saga_progress p ON p.id = s.id \
         WHERE s.tenant = ?1 AND s.key > ?2 || '>' AND s.key < ?2 || '?' ORDER BY s.key",
    )?
    .query_map((tenant, key), Relative::from_row)?
    .collect()
}

/// Those of the sagas that have a work row. The work rows have no index by saga, so one pass finds all of them.
pub(crate) fn with_work(conn: &Connection, sagas: &HashSet<SagaId>) -> rusqlite::Result<HashSet<SagaId>> {
    let mut statement = conn.prepare_cached("SELECT saga FROM saga_work")?;
    let mut rows = statement.query(())?;
    let mut found = HashSet::new();
    while let Some(row) = rows.next()? {
        found.extend(sagas.get(&SagaId(row.get(0)?)));
    }
    Ok(found)
}
