//! The rows of semantic locks: which saga has an entity, which wait for it, and which is next. Only the writer writes them.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension as _};
use saga_core::key::{Key, Tenant};
use saga_core::store::{Entity, LockRequest, Timestamp, Unlock, WaitsFor, youngest_in_ring};

use crate::clock::plus;
use crate::statements::rows::{self, signed};

/// An entity of a tenant.
pub(crate) type EntityOf = (String, String, String);

/// Joins the rows `o` on the entity of the row `m`.
macro_rules! same_entity {
    ($one:literal, $other:literal) => {
        concat!(
            $one,
            ".tenant = ",
            $other,
            ".tenant AND ",
            $one,
            ".kind = ",
            $other,
            ".kind AND ",
            $one,
            ".id = ",
            $other,
            ".id"
        )
    };
}

/// The condition that the owner of the row `m` does not have its entity.
macro_rules! has_not {
    () => {
        concat!(
            "NOT EXISTS (SELECT 1 FROM saga_locked_entities h WHERE ",
            same_entity!("h", "m"),
            " AND h.owner = m.owner AND h.token IS NOT NULL)"
        )
    };
}

/// Inserts a request that waits, or with the tokens of its entities one that is granted, and returns its number.
pub(crate) fn insert(
    conn: &Connection,
    request: &LockRequest,
    tokens: Option<&[u64]>,
    now: Timestamp,
) -> rusqlite::Result<i64> {
    let number = next_number(conn)?;
    let (state, granted_at) = if tokens.is_some() { ("granted", Some(now.0)) } else { ("waiting", None) };
    conn.prepare_cached(
        "INSERT INTO saga_lock_requests \
             (number, tenant, owner, saga, key, name, work, state, asked_at, waits_until, granted_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute((
        number,
        request.tenant.as_str(),
        request.owner.as_str(),
        request.saga.0,
        request.key.as_str(),
        &*request.name,
        request.work.id.0,
        state,
        now.0,
        plus(now, request.within).0,
        granted_at,
    ))?;
    let mut insert = conn.prepare_cached(
        "INSERT INTO saga_locked_entities (tenant, kind, id, number, owner, token) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let (tenant, owner) = (request.tenant.as_str(), request.owner.as_str());
    for (place, entity) in request.entities.iter().enumerate() {
        let token = tokens.and_then(|tokens| tokens.get(place)).map(|token| signed(*token));
        insert.execute((tenant, entity.kind(), entity.id(), number, owner, token))?;
    }
    Ok(number)
}

/// Grants a request. An owner that has an entity already keeps its token.
pub(crate) fn grant(conn: &Connection, number: i64, now: Timestamp) -> rusqlite::Result<()> {
    let kept = concat!(
        "SELECT m.tenant, m.kind, m.id, (SELECT max(h.token) FROM saga_locked_entities h WHERE ",
        same_entity!("h", "m"),
        " AND h.owner = m.owner) FROM saga_locked_entities m WHERE m.number = ?1 ORDER BY m.kind, m.id"
    );
    let entities: Vec<(EntityOf, Option<i64>)> = conn
        .prepare_cached(kept)?
        .query_map([number], |row| Ok(((row.get(0)?, row.get(1)?, row.get(2)?), row.get(3)?)))?
        .collect::<Result<_, _>>()?;
    let sql = "UPDATE saga_locked_entities SET token = ?5 WHERE tenant = ?1 AND kind = ?2 AND id = ?3 AND number = ?4";
    for ((tenant, kind, id), kept) in entities {
        let token = match kept {
            Some(token) => token,
            None => next_number(conn)?,
        };
        conn.prepare_cached(sql)?.execute((tenant, kind, id, number, token))?;
    }
    conn.prepare_cached("UPDATE saga_lock_requests SET state = 'granted', granted_at = ?2 WHERE number = ?1")?
        .execute((number, now.0))?;
    Ok(())
}

/// The owners that a request waits for.
pub(crate) fn blockers(conn: &Connection, number: i64) -> rusqlite::Result<Vec<Key>> {
    let sql = concat!(
        "SELECT DISTINCT o.owner FROM saga_locked_entities m JOIN saga_locked_entities o ON ",
        same_entity!("o", "m"),
        " AND o.owner <> m.owner WHERE m.number = ?1 AND m.token IS NULL \
         AND (o.token IS NOT NULL OR o.number < m.number) AND ",
        has_not!(),
        " ORDER BY 1"
    );
    conn.prepare_cached(sql)?.query_map([number], |row| rows::key(row, 0))?.collect()
}

fn is_blocked(conn: &Connection, number: i64) -> rusqlite::Result<bool> {
    let sql = concat!(
        "SELECT EXISTS (SELECT 1 FROM saga_locked_entities m JOIN saga_locked_entities o ON ",
        same_entity!("o", "m"),
        " AND o.owner <> m.owner WHERE m.number = ?1 AND m.token IS NULL \
         AND (o.token IS NOT NULL OR o.number < m.number) AND ",
        has_not!(),
        ")"
    );
    conn.prepare_cached(sql)?.query_row([number], |row| row.get(0))
}

/// Grants a new request, or ends the rings that it closes.
pub(crate) fn settle(conn: &Connection, request: &LockRequest, number: i64, now: Timestamp) -> rusqlite::Result<()> {
    if !is_blocked(conn, number)? {
        return grant(conn, number, now);
    }
    let (tenant, owner) = (&request.tenant, &request.owner);
    // No other owner waits for one that has nothing else and is the last everywhere.
    let of_owner = "SELECT count(*) FROM saga_lock_requests \
         WHERE tenant = ?1 AND owner = ?2 AND state IN ('waiting', 'granted')";
    let asks_first = |conn: &Connection| {
        conn.prepare_cached(of_owner)?
            .query_row((tenant.as_str(), owner.as_str()), |row| row.get::<_, i64>(0))
            .map(|count| count < 2)
    };
    while !asks_first(conn)? {
        let Some((youngest, other)) = youngest_in_ring(&waits_ahead(conn, tenant, owner)?, owner) else {
            return Ok(());
        };
        give_up(conn, tenant, &youngest, &other, now)?;
    }
    Ok(())
}

/// The waits that can be reached from an owner. Of those in front of it in a queue the last one is enough: the others are
/// reached over that one.
fn waits_ahead(conn: &Connection, tenant: &Tenant, owner: &Key) -> rusqlite::Result<Vec<WaitsFor>> {
    let (mut waits, mut seen, mut open) = (Vec::new(), BTreeSet::from([owner.clone()]), vec![owner.clone()]);
    let first = "SELECT min(number) FROM saga_lock_requests WHERE tenant = ?1 AND owner = ?2";
    while let Some(owner) = open.pop() {
        let first = conn
            .prepare_cached(first)?
            .query_row((tenant.as_str(), owner.as_str()), |row| row.get::<_, Option<i64>>(0))?
            .unwrap_or_default();
        for (holder, has) in holders(conn, tenant, &owner)? {
            if seen.insert(holder.clone()) {
                open.push(holder.clone());
            }
            waits.push(WaitsFor { waits: owner.clone(), first: first.cast_unsigned(), holder, has });
        }
    }
    Ok(waits)
}

/// The owners that an owner waits for, and whether they have an entity or only wait in front.
fn holders(conn: &Connection, tenant: &Tenant, owner: &Key) -> rusqlite::Result<Vec<(Key, bool)>> {
    let sql = concat!(
        "SELECT o.owner, 1 FROM saga_locked_entities m JOIN saga_locked_entities o ON ",
        same_entity!("o", "m"),
        " AND o.owner <> m.owner AND o.token IS NOT NULL \
         WHERE m.tenant = ?1 AND m.owner = ?2 AND m.token IS NULL AND ",
        has_not!(),
        " UNION SELECT q.owner, 0 FROM saga_locked_entities m JOIN saga_locked_entities q ON ",
        same_entity!("q", "m"),
        " AND q.number = (SELECT max(l.number) FROM saga_locked_entities l WHERE ",
        same_entity!("l", "m"),
        " AND l.number < m.number AND l.token IS NULL AND l.owner <> m.owner AND NOT EXISTS (\
             SELECT 1 FROM saga_locked_entities h WHERE ",
        same_entity!("h", "l"),
        " AND h.owner = l.owner AND h.token IS NOT NULL)) \
         WHERE m.tenant = ?1 AND m.owner = ?2 AND m.token IS NULL AND ",
        has_not!(),
    );
    conn.prepare_cached(sql)?
        .query_map((tenant.as_str(), owner.as_str()), |row| Ok((rows::key(row, 0)?, row.get(1)?)))?
        .collect()
}

/// An owner stops waiting, since it and the other one wait for each other. Its work rows are due.
fn give_up(conn: &Connection, tenant: &Tenant, owner: &Key, other: &Key, now: Timestamp) -> rusqlite::Result<()> {
    let waiting = "SELECT number, work FROM saga_lock_requests WHERE tenant = ?1 AND owner = ?2 AND state = 'waiting'";
    let waiting: Vec<(i64, i64)> = conn
        .prepare_cached(waiting)?
        .query_map((tenant.as_str(), owner.as_str()), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut entities = BTreeSet::new();
    for (number, work) in waiting {
        end_wait(conn, number, "deadlock", other)?;
        entities.extend(leave_queue(conn, number)?);
        make_due(conn, work, now)?;
    }
    hand_over(conn, &entities, now)
}

/// A request does not wait any more, and was not granted.
pub(crate) fn end_wait(conn: &Connection, number: i64, state: &str, other: &Key) -> rusqlite::Result<()> {
    let sql = "UPDATE saga_lock_requests SET state = ?2, other = ?3 WHERE number = ?1";
    conn.prepare_cached(sql)?.execute((number, state, other.as_str()))?;
    Ok(())
}

/// Deletes the entities of a lock or of a request, which others may get now.
pub(crate) fn leave_queue(conn: &Connection, number: i64) -> rusqlite::Result<Vec<EntityOf>> {
    conn.prepare_cached("DELETE FROM saga_locked_entities WHERE number = ?1 RETURNING tenant, kind, id")?
        .query_map([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

/// Grants the requests on these entities that are not blocked any more, and makes their rows due.
pub(crate) fn hand_over(conn: &Connection, entities: &BTreeSet<EntityOf>, now: Timestamp) -> rusqlite::Result<()> {
    let queue = "SELECT number FROM saga_locked_entities \
         WHERE tenant = ?1 AND kind = ?2 AND id = ?3 AND token IS NULL";
    let mut waiting = BTreeSet::new();
    for (tenant, kind, id) in entities {
        let mut queue = conn.prepare_cached(queue)?;
        let numbers = queue.query_map((tenant, kind, id), |row| row.get::<_, i64>(0))?;
        for number in numbers {
            waiting.insert(number?);
        }
    }
    // A grant frees nothing, except for the same owner, whose requests come in their order as well.
    while let Some(number) = first_free(conn, &waiting)? {
        waiting.remove(&number);
        grant(conn, number, now)?;
        let work = conn
            .prepare_cached("SELECT work FROM saga_lock_requests WHERE number = ?1")?
            .query_row([number], |row| row.get(0))?;
        make_due(conn, work, now)?;
    }
    Ok(())
}

fn first_free(conn: &Connection, waiting: &BTreeSet<i64>) -> rusqlite::Result<Option<i64>> {
    for number in waiting {
        if !is_blocked(conn, *number)? {
            return Ok(Some(*number));
        }
    }
    Ok(None)
}

/// Ends locks and requests in the commit of the changes that say so.
pub(crate) fn unlock(conn: &Connection, unlocks: &[Unlock], now: Timestamp) -> rusqlite::Result<()> {
    let mut numbers: Vec<i64> = Vec::new();
    for unlock in unlocks {
        match unlock {
            Unlock::Owner(tenant, owner) => {
                let sql = "SELECT number FROM saga_lock_requests WHERE tenant = ?1 AND owner = ?2";
                let mut of_owner = conn.prepare_cached(sql)?;
                let found = of_owner.query_map((tenant.as_str(), owner.as_str()), |row| row.get(0))?;
                numbers.extend(found.collect::<Result<Vec<i64>, _>>()?);
            }
            Unlock::Lock(_, saga, name) => numbers.extend(number_of(conn, saga.0, name)?),
        }
    }
    let mut entities = BTreeSet::new();
    for number in numbers {
        entities.extend(leave_queue(conn, number)?);
        conn.prepare_cached("DELETE FROM saga_lock_requests WHERE number = ?1")?.execute([number])?;
    }
    hand_over(conn, &entities, now)
}

pub(crate) fn number_of(conn: &Connection, saga: i64, name: &str) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT number FROM saga_lock_requests WHERE saga = ?1 AND name = ?2")?
        .query_row((saga, name), |row| row.get(0))
        .optional()
}

fn make_due(conn: &Connection, work: i64, now: Timestamp) -> rusqlite::Result<()> {
    conn.prepare_cached("UPDATE saga_work SET due_at = ?2 WHERE id = ?1")?.execute((work, now.0))?;
    Ok(())
}

pub(crate) fn next_number(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached("UPDATE saga_lock_numbers SET last = last + 1 RETURNING last")?.query_row((), |row| row.get(0))
}

/// The entities of a request that waits or is granted, with their tokens.
pub(crate) fn entities_of(conn: &Connection, number: i64) -> rusqlite::Result<Vec<(Entity, Option<u64>)>> {
    let sql = "SELECT kind, id, token FROM saga_locked_entities WHERE number = ?1 ORDER BY kind, id";
    conn.prepare_cached(sql)?
        .query_map([number], |row| {
            let (kind, id): (String, String) = (row.get(0)?, row.get(1)?);
            Ok((Entity::new(kind, id), row.get::<_, Option<i64>>(2)?.map(i64::cast_unsigned)))
        })?
        .collect()
}

/// Whether the work row has that epoch.
pub(crate) fn has_work(conn: &Connection, request: &LockRequest) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM saga_work WHERE id = ?1 AND epoch = ?2)")?
        .query_row((request.work.id.0, signed(request.work.epoch)), |row| row.get(0))
}
