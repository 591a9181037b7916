//! The walk through hosted steps that no message has closed.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension as _};
use saga_core::key::{Key, Tenant};
use saga_core::store::{
    DefinitionId, KnownSaga, SagaId, StoreError, StoreErrorKind, Timestamp, Unclosed, UnclosedFilter, UnclosedStep,
    UnclosedWalk,
};

use crate::clock::{elapsed_between, micros};
use crate::error::Failure;
use crate::statements::rows::{self, limit, signed};
use crate::writer::session::Session;

/// The next part of the walk.
pub(crate) fn unclosed(session: &mut Session, epoch: u64, filter: &UnclosedFilter) -> Result<Unclosed, Failure> {
    let now = session.now();
    let Some(walk) = walk_of(&session.conn, epoch)? else {
        let detail = "another process has the lease of the maintenance task";
        return Err(StoreError::new(StoreErrorKind::Conflict, "unclosed", detail).into());
    };
    let Some(after) = walk.next_part(filter.interval, now) else { return Ok(Unclosed::default()) };
    let mut definitions = HashMap::new();
    for definition in &filter.definitions {
        let number = session.definitions.known(&session.conn, definition)?;
        definitions.extend(number.map(|number| (number, definition)));
    }
    let (steps, last) = part(&session.conn, filter, after, &definitions, now)?;
    let walk = walk.after(last, now);
    session
        .conn
        .prepare_cached("UPDATE saga_maintenance SET walked_to = ?1, walk_ended_at = ?2 WHERE name = 'purge'")?
        .execute((walk.walked_to.map(|id| id.0), walk.ended_at.map(|at| at.0)))?;
    Ok(Unclosed { steps, more: last.is_some() })
}

/// Which of these sagas there are.
pub(crate) fn known(conn: &Connection, tenant: &Tenant, keys: &[Key]) -> rusqlite::Result<Vec<KnownSaga>> {
    let mut by_key = conn.prepare_cached(
        "SELECT length(p.state) = 0 FROM saga_sagas s JOIN saga_progress p ON p.id = s.id \
         WHERE s.tenant = ?1 AND s.key = ?2",
    )?;
    let mut known = Vec::new();
    for key in keys.iter().collect::<BTreeSet<_>>() {
        let found = by_key.query_row((tenant.as_str(), key.as_str()), |row| row.get(0)).optional()?;
        known.extend(found.map(|is_tombstone| KnownSaga { key: key.clone(), is_tombstone }));
    }
    Ok(known)
}

/// Where the walk is, if the lease has that epoch.
fn walk_of(conn: &Connection, epoch: u64) -> rusqlite::Result<Option<UnclosedWalk>> {
    conn.prepare_cached("SELECT walked_to, walk_ended_at FROM saga_maintenance WHERE name = 'purge' AND epoch = ?1")?
        .query_row([signed(epoch)], |row| {
            let (walked_to, ended_at) = (row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?);
            Ok(UnclosedWalk { walked_to: walked_to.map(SagaId), ended_at: ended_at.map(Timestamp) })
        })
        .optional()
}

/// Looks at the sagas behind `after`. Answers the steps among them, and the last saga if there may be more.
fn part(
    conn: &Connection,
    filter: &UnclosedFilter,
    after: SagaId,
    definitions: &HashMap<i64, &DefinitionId>,
    now: Timestamp,
) -> rusqlite::Result<(Vec<UnclosedStep>, Option<SagaId>)> {
    let mut statement = conn.prepare_cached(
        "SELECT s.id, s.definition, s.tenant, s.key, p.state, p.ended_at, \
         p.ended_at <= ?3 AND p.expires_at IS NULL AND length(p.state) > 0 \
         FROM saga_sagas s JOIN saga_progress p ON p.id = s.id WHERE s.id > ?1 ORDER BY s.id LIMIT ?2",
    )?;
    let until = now.0.saturating_sub(micros(filter.interval));
    let mut found = statement.query((after.0, limit(filter.limit), until))?;
    let (mut seen, mut last, mut steps) = (0, None, Vec::new());
    while let Some(row) = found.next()? {
        seen += 1;
        last = Some(SagaId(row.get(0)?));
        let is_unclosed = row.get::<_, Option<bool>>(6)?.unwrap_or(false);
        let Some(definition) = definitions.get(&row.get(1)?).filter(|_| is_unclosed) else { continue };
        steps.push(UnclosedStep {
            tenant: rows::tenant(row, 2)?,
            key: rows::key(row, 3)?,
            definition: (*definition).clone(),
            state: row.get(4)?,
            ended_ago: elapsed_between(Timestamp(row.get(5)?), now),
        });
    }
    Ok((steps, last.filter(|_| seen == filter.limit)))
}
