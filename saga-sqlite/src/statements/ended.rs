//! Gives sagas that ended before another expiry.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Row};
use saga_core::key::{Key, Tenant};
use saga_core::store::{DefinitionId, EndedExpired, ExpireEnded, Expiry, SagaId, Timestamp};

use crate::clock::plus;
use crate::statements::expiry::Dates;
use crate::statements::rows::limit;
use crate::writer::session::Session;

/// A saga that has ended.
pub(crate) struct Ended {
    id: SagaId,
    at: Timestamp,
    is_tombstone: bool,
}

impl Ended {
    /// The saga of that key, if it has ended.
    pub(crate) fn of_key(conn: &Connection, tenant: &Tenant, key: &Key) -> rusqlite::Result<Option<Self>> {
        conn.prepare_cached(
            "SELECT p.id, p.ended_at, length(p.state) = 0 FROM saga_sagas s JOIN saga_progress p ON p.id = s.id \
             WHERE s.tenant = ?1 AND s.key = ?2 AND p.ended_at IS NOT NULL",
        )?
        .query_row((tenant.as_str(), key.as_str()), Self::from_row)
        .optional()
    }

    /// Dates it by its end.
    pub(crate) fn date(&self, conn: &Connection, expiry: Option<&Expiry>) -> rusqlite::Result<()> {
        Dates::of_ended(expiry, self.at, self.is_tombstone).write(conn, self.id)
    }

    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { id: SagaId(row.get(0)?), at: Timestamp(row.get(1)?), is_tombstone: row.get(2)? })
    }
}

pub(crate) fn expire_ended(conn: &Connection, request: &ExpireEnded) -> rusqlite::Result<EndedExpired> {
    let mut statement = conn.prepare_cached(
        "SELECT p.id, p.ended_at, length(p.state) = 0, \
         p.ended_at IS NOT NULL AND p.status = ?3 AND d.name = ?4 AND d.version = ?5 AND NOT instr(s.key, '>') \
         FROM saga_sagas s JOIN saga_progress p ON p.id = s.id JOIN saga_definitions d ON d.id = s.definition \
         WHERE s.id > ?1 ORDER BY s.id LIMIT ?2",
    )?;
    let after = request.after.map_or(i64::MIN, |after| after.0);
    let DefinitionId { name, version } = &request.definition;
    let parameters = (after, limit(request.limit), request.status.as_str(), &**name, version);
    let mut rows = statement.query(parameters)?;
    let (mut seen, mut last, mut meant) = (0, None, Vec::new());
    while let Some(row) = rows.next()? {
        seen += 1;
        last = Some(SagaId(row.get(0)?));
        if row.get(3)? {
            meant.push(Ended::from_row(row)?);
        }
    }
    for ended in &meant {
        ended.date(conn, Some(&request.expiry))?;
    }
    Ok(EndedExpired { sagas: meant.len() as u64, next: last.filter(|_| seen == request.limit) })
}

pub(crate) fn expire_hosted(
    session: &mut Session,
    definitions: &[DefinitionId],
    closed: &[(Tenant, Key)],
    delete_in: Duration,
) -> rusqlite::Result<u64> {
    let mut numbers = BTreeSet::new();
    for definition in definitions {
        numbers.extend(session.definitions.known(&session.conn, definition)?);
    }
    let conn = &session.conn;
    // `?` is the character behind `>`.
    let mut below = conn.prepare_cached(
        "SELECT s.id, s.definition FROM saga_sagas s JOIN saga_progress p ON p.id = s.id \
         WHERE s.tenant = ?1 AND s.key > ?2 || '>' AND s.key < ?2 || '?' AND p.ended_at IS NOT NULL",
    )?;
    let mut meant = BTreeSet::new();
    for (tenant, key) in closed {
        let mut rows = below.query((tenant.as_str(), key.as_str()))?;
        while let Some(row) = rows.next()? {
            if numbers.contains(&row.get(1)?) {
                meant.insert(SagaId(row.get(0)?));
            }
        }
    }
    let dates = Dates { expires_at: Some(plus(session.now(), delete_in).0), ..Dates::default() };
    for saga in &meant {
        dates.write(conn, *saga)?;
    }
    Ok(meant.len() as u64)
}
