//! Claims of work: which rows are free, and how they are leased.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use saga_core::store::{
    ClaimRequest, Claimed, ClaimedWork, Lease, SagaId, SagaRow, StepRecord, Timestamp, UnreadableWork, WorkId,
    WorkKind, WorkRef,
};

use crate::clock::{elapsed_between, plus};
use crate::statements::rows::{self, FromRow};
use crate::statements::saga_rows::saga_by_id;
use crate::writer::session::Session;

/// A row that a claim may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    pub(crate) due_at: i64,
    pub(crate) id: i64,
}

pub(crate) fn claim(session: &mut Session, request: &ClaimRequest) -> rusqlite::Result<Claimed> {
    let now = session.now();
    let mut definitions = Vec::with_capacity(request.definitions.len());
    for definition in &*request.definitions {
        definitions.extend(session.definitions.known(&session.conn, definition)?);
    }
    let takes_over = request.takes_over && session.shared.members.is_alive(request.lease.owner, now);
    let mut claimed = Claimed::default();
    loop {
        // One more than asked for, to know whether another row waits.
        let room = (request.limit - claimed.work.len()).saturating_add(1);
        let mut candidates = candidates(session, &definitions, now, room + claimed.work.len(), takes_over)?;
        // Rows that a dead owner claims are free again at once; they must not be claimed twice.
        candidates.retain(|row| claimed.work.iter().all(|work| work.work.id.0 != row.id));
        let had_recorded = take(session, (request.lease, request.limit), &candidates, now, &mut claimed)?;
        let is_full = claimed.work.len() >= request.limit;
        if is_full && candidates.len() >= room {
            claimed.next_due_in = Some(Duration::ZERO);
            break;
        }
        if !had_recorded || is_full {
            claimed.next_due_in = next_due_in(session, &definitions, now, takes_over)?;
            break;
        }
    }
    // After the search, which forgets a dead owner without rows.
    session.note_owner(request.lease.owner);
    load_sagas(&session.conn, &mut claimed)?;
    Ok(claimed)
}

/// Rows that are due, free and of a known definition: the oldest due first.
pub(crate) fn candidates(
    session: &mut Session,
    definitions: &[i64],
    now: Timestamp,
    limit: usize,
    takes_over: bool,
) -> rusqlite::Result<Vec<Candidate>> {
    let mut found = Vec::new();
    {
        let mut free = session.conn.prepare_cached(
            "SELECT due_at, id FROM saga_work WHERE owner IS NULL AND definition = ?1 AND due_at <= ?2 \
             ORDER BY due_at, id LIMIT ?3",
        )?;
        for definition in definitions {
            let rows = free.query_map((definition, now.0, rows::limit(limit)), candidate)?;
            rows.collect::<rusqlite::Result<Vec<_>>>().map(|rows| found.extend(rows))?;
        }
    }
    if takes_over {
        for_each_abandoned(session, definitions, now, |row| {
            if row.due_at <= now.0 {
                found.push(row);
            }
        })?;
    }
    found.sort_unstable();
    found.truncate(limit);
    Ok(found)
}

/// Rows whose lease has ended, or whose owner is dead.
fn for_each_abandoned(
    session: &mut Session,
    definitions: &[i64],
    now: Timestamp,
    mut found: impl FnMut(Candidate),
) -> rusqlite::Result<()> {
    for_each_abandoned_row(session, now, |row| {
        if definitions.contains(&row.get(2)?) {
            found(candidate(row)?);
        }
        Ok(())
    })
}

/// The same rows of any definition: due time, id, definition, kind and step.
pub(crate) fn for_each_abandoned_row(
    session: &mut Session,
    now: Timestamp,
    mut found: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let Session { conn, shared, owners, .. } = session;
    let mut statement = conn.prepare_cached(
        "SELECT due_at, id, definition, kind, step FROM saga_work WHERE owner = ?1 AND leased_until <= ?2",
    )?;
    let mut gone = HashSet::new();
    for owner in &*owners {
        let lives = shared.members.is_alive(*owner, now);
        let ended_by = if lives { now.0 } else { i64::MAX };
        let mut rows = statement.query((owner.0, ended_by))?;
        let mut is_empty = true;
        while let Some(row) = rows.next()? {
            is_empty = false;
            found(row)?;
        }
        if is_empty && !lives {
            gone.insert(*owner);
        }
    }
    owners.retain(|owner| !gone.contains(owner));
    Ok(())
}

pub(crate) fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    Ok(Candidate { due_at: row.get(0)?, id: row.get(1)? })
}

/// Leases candidates until the claim is full; deletes those whose step has a record, and answers whether there were
/// any.
pub(crate) fn take(
    session: &mut Session,
    (lease, limit): (Lease, usize),
    candidates: &[Candidate],
    now: Timestamp,
    claimed: &mut Claimed,
) -> rusqlite::Result<bool> {
    let mut had_recorded = false;
    let conn = &session.conn;
    let until = plus(now, lease.ttl).0;
    for candidate in candidates {
        if claimed.work.len() >= limit {
            break;
        }
        let is_recorded: bool = conn
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM saga_records r WHERE r.tenant = w.tenant AND r.key = w.key \
                 AND r.step = w.step) FROM saga_work w WHERE w.id = ?1",
            )?
            .query_row([candidate.id], |row| row.get(0))?;
        if is_recorded {
            conn.prepare_cached("DELETE FROM saga_work WHERE id = ?1")?.execute([candidate.id])?;
            had_recorded = true;
            continue;
        }
        // Only a lease that its owner did not release is still on a free row: that owner vanished.
        let work = conn
            .prepare_cached(
                "UPDATE saga_work SET epoch = epoch + 1, suspect = suspect OR owner IS NOT NULL, owner = ?2, \
                 waiting = CASE WHEN waiting = epoch OR (owner IS NULL AND NOT suspect) THEN epoch + 1 END, \
                 leased_until = ?3 WHERE id = ?1 RETURNING id, epoch, kind, saga, step, attempts, maybe, suspect, \
                 retrying_since, payload, late, report, reported_at, progress, waiting IS NULL",
            )?
            .query_row(params![candidate.id, lease.owner.0, until], |row| {
                let retrying_since: Option<i64> = row.get(8)?;
                let retrying_for = retrying_since.map(|since| elapsed_between(Timestamp(since), now));
                Ok(ClaimedWork { retrying_for, ..ClaimedWork::from_row(row)? })
            });
        match rows::readable(work)? {
            Ok(work) => claimed.work.push(work),
            Err(problem) => claimed.unreadable.push(UnreadableWork { work: WorkId(candidate.id), problem }),
        }
    }
    Ok(had_recorded)
}

/// `retrying_for` depends on the clock of the claim, and is not read here.
impl FromRow for ClaimedWork {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            work: WorkRef { id: WorkId(row.get(0)?), epoch: rows::unsigned(row, 1)? },
            kind: rows::parsed(row, 2, WorkKind::parse)?,
            saga: SagaId(row.get(3)?),
            step: rows::step(row, 4)?,
            attempts: row.get(5)?,
            in_doubt: row.get(6)?,
            recovered: row.get(7)?,
            retrying_for: None,
            payload: row.get(9)?,
            late: row.get(10)?,
            reported: rows::reported(row, 11)?,
            began: row.get(14)?,
        })
    }
}

/// The time until the next free row of a known definition is due.
pub(crate) fn next_due_in(
    session: &mut Session,
    definitions: &[i64],
    now: Timestamp,
    takes_over: bool,
) -> rusqlite::Result<Option<Duration>> {
    let mut next = None::<i64>;
    let mut sooner = |due_at: i64| next = Some(next.map_or(due_at, |next| next.min(due_at)));
    for definition in definitions {
        let first = session
            .conn
            .prepare_cached(
                "SELECT due_at FROM saga_work WHERE owner IS NULL AND definition = ?1 ORDER BY due_at LIMIT 1",
            )?
            .query_row([definition], |row| row.get(0))
            .optional()?;
        first.into_iter().for_each(&mut sooner);
    }
    if takes_over {
        for_each_abandoned(session, definitions, now, |row| sooner(row.due_at))?;
    }
    Ok(next.map(|due_at| elapsed_between(now, Timestamp(due_at))))
}

/// Loads the sagas of the claimed rows. Rows whose saga cannot be read become unreadable.
pub(crate) fn load_sagas(conn: &Connection, claimed: &mut Claimed) -> rusqlite::Result<()> {
    let mut loaded = HashSet::with_capacity(claimed.work.len());
    let mut problems = BTreeMap::new();
    for work in &claimed.work {
        if loaded.insert(work.saga) {
            match rows::readable(saga_with_records(conn, work.saga).optional())? {
                Ok(saga) => claimed.sagas.extend(saga),
                Err(problem) => _ = problems.insert(work.saga, problem),
            }
        }
    }
    claimed.leave_out_unread(&problems);
    Ok(())
}

fn saga_with_records(conn: &Connection, saga: SagaId) -> rusqlite::Result<(SagaRow, Vec<StepRecord>)> {
    let saga = saga_by_id(conn, saga)?;
    let records = rows::records_of_steps(conn, saga.tenant.as_str(), saga.key.as_str())?;
    Ok((saga, records))
}
