//! Claims of a part of the work.

use std::time::Duration;

use rusqlite::{Row, params};
use saga_core::store::{ClaimShare, Claimed, ShareRequest, Timestamp, WorkKind};

use crate::clock::elapsed_between;
use crate::statements::claims::{Candidate, candidate, for_each_abandoned_row, load_sagas, take};
use crate::statements::rows;
use crate::writer::session::Session;

/// The free rows of one step. They are found among those of the definition: with an index of their own, every commit
/// that leaves a free row would write one more page.
const OF_STEP: &str = "FROM saga_work WHERE owner IS NULL AND definition = ?1 AND kind = ?2 \
     AND substr(step, 1, instr(replace(step, '#', ':') || ':', ':') - 1) = ?3";
const OF_DEFINITION: &str = "FROM saga_work WHERE owner IS NULL AND definition = ?1";

/// A share of the work of a definition that the store knows.
struct Share<'a> {
    definition: i64,
    asked: &'a ClaimShare,
    /// How many more rows of it may be taken.
    room: usize,
}

pub(crate) fn claim_shares(session: &mut Session, request: &ShareRequest) -> rusqlite::Result<Claimed> {
    let now = session.now();
    let mut shares = Vec::with_capacity(request.shares.len());
    for asked in &request.shares {
        let definition = session.definitions.known(&session.conn, &asked.definition)?;
        shares.extend(definition.map(|definition| Share { definition, asked, room: asked.limit }));
    }
    let takes_over = request.takes_over && session.shared.members.is_alive(request.lease.owner, now);
    let mut claimed = Claimed::default();
    loop {
        let limit = request.limit - claimed.work.len();
        let (found, more) = candidates(session, &shares, &claimed, now, limit, takes_over)?;
        let rows: Vec<Candidate> = found.iter().map(|(row, _)| *row).collect();
        let before = claimed.work.len();
        let had_recorded = take(session, (request.lease, request.limit), &rows, now, &mut claimed)?;
        for work in &claimed.work[before..] {
            if let Some((_, share)) = found.iter().find(|(row, _)| row.id == work.work.id.0) {
                shares[*share].room -= 1;
            }
        }
        let is_full = claimed.work.len() >= request.limit;
        if is_full && (more || had_recorded) {
            claimed.next_due_in = Some(Duration::ZERO);
            break;
        }
        if !had_recorded || is_full {
            claimed.next_due_in = next_due_in(session, &shares, now, takes_over)?;
            break;
        }
    }
    // After the search, which forgets a dead owner without rows.
    session.note_owner(request.lease.owner);
    load_sagas(&session.conn, &mut claimed)?;
    Ok(claimed)
}

/// Due and free rows for which their shares have room, each with its share: the oldest due first, at most `limit`. And
/// whether there are more.
fn candidates(
    session: &mut Session,
    shares: &[Share<'_>],
    claimed: &Claimed,
    now: Timestamp,
    limit: usize,
    takes_over: bool,
) -> rusqlite::Result<(Vec<(Candidate, usize)>, bool)> {
    let mut found = Vec::new();
    for (number, share) in shares.iter().enumerate().filter(|(_, share)| share.room > 0) {
        // One more than can be taken, to know whether another row waits.
        let most = rows::limit(share.room.min(limit.saturating_add(1)));
        let mut add = |row: &Row<'_>| candidate(row).map(|row| found.push((row, number)));
        match &share.asked.steps {
            None => {
                let sql = format!("SELECT due_at, id {OF_DEFINITION} AND due_at <= ?2 ORDER BY due_at, id LIMIT ?3");
                let mut statement = session.conn.prepare_cached(&sql)?;
                let mut rows = statement.query(params![share.definition, now.0, most])?;
                while let Some(row) = rows.next()? {
                    add(row)?;
                }
            }
            Some(steps) => {
                let sql = format!("SELECT due_at, id {OF_STEP} AND due_at <= ?4 ORDER BY due_at, id LIMIT ?5");
                let mut statement = session.conn.prepare_cached(&sql)?;
                for step in steps.iter() {
                    let of = params![share.definition, step.kind.as_str(), step.step, now.0, most];
                    let mut rows = statement.query(of)?;
                    while let Some(row) = rows.next()? {
                        add(row)?;
                    }
                }
            }
        }
    }
    if takes_over {
        for_each_abandoned_row(session, now, |row| {
            let (row, share) = (candidate(row)?, share_of(shares, row)?);
            found.extend(share.filter(|_| row.due_at <= now.0).map(|share| (row, share)));
            Ok(())
        })?;
    }
    // Rows that a dead owner claims are free again at once; they must not be claimed twice.
    found.retain(|(row, _)| claimed.work.iter().all(|work| work.work.id.0 != row.id));
    found.sort_unstable();
    let mut room: Vec<usize> = shares.iter().map(|share| share.room).collect();
    found.retain(|(_, share)| {
        let has_room = room[*share] > 0;
        room[*share] -= usize::from(has_room);
        has_room
    });
    let more = found.len() > limit;
    found.truncate(limit);
    Ok((found, more))
}

/// The share of an abandoned row.
fn share_of(shares: &[Share<'_>], row: &Row<'_>) -> rusqlite::Result<Option<usize>> {
    let (definition, kind, step): (i64, _, _) =
        (row.get(2)?, rows::parsed(row, 3, WorkKind::parse)?, rows::step(row, 4)?);
    let is_of =
        |share: &Share<'_>| share.definition == definition && share.asked.takes(&share.asked.definition, kind, &step);
    Ok(shares.iter().position(is_of))
}

/// The time until the next row of a share is due that is not due yet.
fn next_due_in(
    session: &mut Session,
    shares: &[Share<'_>],
    now: Timestamp,
    takes_over: bool,
) -> rusqlite::Result<Option<Duration>> {
    let mut next = None::<i64>;
    let mut sooner = |due_at: Option<i64>| {
        next = next.into_iter().chain(due_at).min();
    };
    for share in shares {
        match &share.asked.steps {
            None => {
                let sql = format!("SELECT min(due_at) {OF_DEFINITION} AND due_at > ?2");
                let mut statement = session.conn.prepare_cached(&sql)?;
                sooner(statement.query_row(params![share.definition, now.0], |row| row.get(0))?);
            }
            Some(steps) => {
                let sql = format!("SELECT min(due_at) {OF_STEP} AND due_at > ?4");
                let mut statement = session.conn.prepare_cached(&sql)?;
                for step in steps.iter() {
                    let of = params![share.definition, step.kind.as_str(), step.step, now.0];
                    sooner(statement.query_row(of, |row| row.get(0))?);
                }
            }
        }
    }
    if takes_over {
        for_each_abandoned_row(session, now, |row| {
            let (row, share) = (candidate(row)?, share_of(shares, row)?);
            sooner(share.map(|_| row.due_at).filter(|due_at| *due_at > now.0));
            Ok(())
        })?;
    }
    Ok(next.map(|due_at| elapsed_between(now, Timestamp(due_at))))
}
