//! How many messages were published under an ordering key, and when the last one was.

use std::collections::HashSet;
use std::time::Duration;

use rusqlite::{Connection, Row};
use saga_core::store::{NewMessage, Timestamp};

use crate::clock::micros;
use crate::statements::rows::limit;

/// How exact the time of the last message is, since each date is written to an index.
const DATED_EVERY: Duration = Duration::from_hours(1);

/// How many of the oldest messages in the outbox are compared.
const MESSAGES_MAX: usize = 1_000;

type OrderingKey = (String, String, String);

/// Counts a message, and answers its position. Only one transaction writes at a time, so the counter needs no lock.
pub(crate) fn count(conn: &Connection, message: &NewMessage, now: Timestamp) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO saga_published (tenant, aggregatetype, aggregateid, position, published_at) \
         VALUES (?1, ?2, ?3, 1, ?4) ON CONFLICT DO UPDATE SET position = position + 1 RETURNING position, published_at";
    let key = (message.tenant.as_str(), &*message.aggregate_type, &*message.aggregate_id, now.0);
    let counted = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (position, published_at): (i64, Option<i64>) = conn.prepare_cached(sql)?.query_row(key, counted)?;
    if published_at.is_none_or(|at| at < now.0 - micros(DATED_EVERY)) {
        let sql = "UPDATE saga_published SET published_at = ?4 \
             WHERE tenant = ?1 AND aggregatetype = ?2 AND aggregateid = ?3";
        conn.prepare_cached(sql)?.execute(key)?;
    }
    Ok(position)
}

/// Deletes counters that were not used since that time, and have no message in the outbox. A message that is still there
/// is as old as its counter, so it is among the oldest; where these are many, nothing is deleted.
pub(crate) fn forget_published(conn: &Connection, used_before: i64, most: usize) -> rusqlite::Result<u64> {
    let Some(waiting) = old_messages(conn, used_before)? else { return Ok(0) };
    let mut statement = conn.prepare_cached(
        "SELECT tenant, aggregatetype, aggregateid FROM saga_published WHERE published_at < ?1 \
         ORDER BY published_at LIMIT ?2",
    )?;
    let dated_before = used_before.saturating_sub(micros(DATED_EVERY));
    let old = statement.query_map((dated_before, limit(most.saturating_add(waiting.len()))), ordering_key)?;
    let old: Vec<OrderingKey> = old.collect::<rusqlite::Result<_>>()?;
    let mut delete = conn
        .prepare_cached("DELETE FROM saga_published WHERE tenant = ?1 AND aggregatetype = ?2 AND aggregateid = ?3")?;
    let mut deleted = 0;
    for key in old.into_iter().filter(|key| !waiting.contains(key)).take(most) {
        deleted += delete.execute(key)? as u64;
    }
    Ok(deleted)
}

/// The ordering keys of the oldest messages in the outbox; `None` if more than are looked at are older than that time.
fn old_messages(conn: &Connection, before: i64) -> rusqlite::Result<Option<HashSet<OrderingKey>>> {
    let mut statement = conn.prepare_cached(
        "SELECT tenant, aggregatetype, aggregateid, committed_at FROM saga_outbox ORDER BY seq LIMIT ?1",
    )?;
    let mut rows = statement.query([limit(MESSAGES_MAX)])?;
    let (mut older, mut keys) = (0, HashSet::new());
    while let Some(row) = rows.next()? {
        older += usize::from(row.get::<_, i64>(3)? <= before);
        keys.insert(ordering_key(row)?);
    }
    Ok((older < MESSAGES_MAX).then_some(keys))
}

fn ordering_key(row: &Row<'_>) -> rusqlite::Result<OrderingKey> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}
