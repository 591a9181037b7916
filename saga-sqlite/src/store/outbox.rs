//! The outbox.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use saga_core::key::Tenant;
use saga_core::store::{
    LANES, Lease, LeasedLane, MemberId, MessageId, MessageKind, NewDeadLetter, NewMessage, NewParked, Outbox,
    OutboxDepth, OutboxRow, ParkedKey, StoreError, Timestamp,
};

use crate::clock::{elapsed_between, plus};
use crate::statements::rows::{self, FromRow, id_bytes, signed};
use crate::store::dead_letters::insert_discarded;
use crate::store::store::SqliteStore;
use crate::writer::session::Session;

/// The condition that a row `o` is due at the time `?2` and its key is not parked.
macro_rules! may_go {
    () => {
        "o.due_at <= ?2 AND NOT EXISTS (SELECT 1 FROM saga_parked k WHERE k.tenant = o.tenant AND k.aggregatetype = o.aggregatetype \
         AND k.aggregateid = o.aggregateid AND (k.retry_at IS NULL OR k.retry_at > ?2))"
    };
}

#[async_trait]
impl Outbox for SqliteStore {
    async fn lease_lanes(&self, lease: Lease, limit: usize) -> Result<Vec<LeasedLane>, StoreError> {
        self.call("lease_lanes", move |session| Ok(lease_lanes(session, lease, limit)?)).await
    }

    async fn renew_lanes(&self, lanes: &[LeasedLane], lease: Lease) -> Result<Vec<bool>, StoreError> {
        let lanes = lanes.to_vec();
        self.call("renew_lanes", move |session| {
            let until = plus(session.now(), lease.ttl).0;
            let sql = "UPDATE saga_lanes SET owner = ?3, leased_until = ?4 WHERE lane = ?1 AND epoch = ?2";
            let mut statement = session.conn.prepare_cached(sql)?;
            let renew =
                |lane: &LeasedLane| Ok(statement.execute((lane.lane, signed(lane.epoch), lease.owner.0, until))? == 1);
            lanes.iter().map(renew).collect()
        })
        .await
    }

    async fn release_lanes(&self, lanes: &[LeasedLane]) -> Result<(), StoreError> {
        let lanes = lanes.to_vec();
        self.call("release_lanes", move |session| {
            let sql = "UPDATE saga_lanes SET owner = NULL, leased_until = NULL WHERE lane = ?1 AND epoch = ?2";
            let mut statement = session.conn.prepare_cached(sql)?;
            for lane in &lanes {
                statement.execute((lane.lane, signed(lane.epoch)))?;
            }
            Ok(())
        })
        .await
    }

    async fn read_lane(&self, lane: LeasedLane, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        let now = self.now();
        let read = self.query("read_lane", move |conn| read_lane(conn, lane, limit, now));
        let (rows, unreadable) = read.await?;
        if !unreadable.is_empty() {
            self.park(&unreadable).await?;
        }
        Ok(rows)
    }

    async fn sent(&self, messages: &[MessageId]) -> Result<(), StoreError> {
        let messages = messages.to_vec();
        self.call("sent", move |session| {
            for message in &messages {
                delete(&session.conn, *message)?;
                unpark(&session.conn, *message)?;
            }
            Ok(())
        })
        .await
    }

    async fn park(&self, parked: &[NewParked]) -> Result<(), StoreError> {
        let parked = parked.to_vec();
        self.call("park", move |session| {
            let sql = "INSERT INTO saga_parked (tenant, aggregatetype, aggregateid, message, attempts, error, since, retry_at) \
                 SELECT tenant, aggregatetype, aggregateid, id, ?2, ?3, ?4, ?5 FROM saga_outbox WHERE id = ?1 \
                 ON CONFLICT (tenant, aggregatetype, aggregateid) DO UPDATE SET message = excluded.message, \
                 attempts = excluded.attempts, error = excluded.error, retry_at = excluded.retry_at";
            let (now, mut statement) = (session.now(), session.conn.prepare_cached(sql)?);
            for NewParked { message, attempts, error, retry_in } in &parked {
                let retry_at = retry_in.map(|pause| plus(now, pause).0);
                statement.execute((id_bytes(*message), attempts, error, now.0, retry_at))?;
            }
            Ok(())
        })
        .await
    }

    async fn parked(&self, tenant: Option<&Tenant>, limit: usize) -> Result<Vec<ParkedKey>, StoreError> {
        let tenant = tenant.map(|tenant| tenant.as_str().to_owned());
        self.query("parked", move |conn| {
            conn.prepare_cached(
                "SELECT tenant, aggregatetype, aggregateid, message, attempts, error, since, retry_at FROM saga_parked \
                 WHERE ?1 IS NULL OR tenant = ?1 LIMIT ?2",
            )?
            .query_map((tenant, rows::limit(limit)), ParkedKey::from_row)?
            .collect()
        })
        .await
    }

    async fn release(&self, message: MessageId) -> Result<bool, StoreError> {
        self.call("release", move |session| Ok(unpark(&session.conn, message)?)).await
    }

    async fn discard(&self, message: MessageId, letter: &NewDeadLetter, note: &str) -> Result<bool, StoreError> {
        let (letter, note) = (letter.clone(), note.to_owned());
        self.call("discard", move |session| {
            let was_parked = unpark(&session.conn, message)?;
            if was_parked {
                let payload = delete(&session.conn, message)?.unwrap_or_default();
                insert_discarded(session, &NewDeadLetter { payload, ..letter.clone() }, &note)?;
            }
            Ok(was_parked)
        })
        .await
    }

    async fn oldest_ages(&self, messages: &[NewMessage]) -> Result<Vec<Option<Duration>>, StoreError> {
        let now = self.now();
        let key = |message: &NewMessage| {
            let NewMessage { tenant, aggregate_type, aggregate_id, .. } = message;
            (message.lane, tenant.as_str().to_owned(), aggregate_type.clone(), aggregate_id.clone())
        };
        let keys: Vec<_> = messages.iter().map(key).collect();
        self.query("oldest_ages", move |conn| {
            let sql = "SELECT min(committed_at) FROM saga_outbox \
                 WHERE lane = ?1 AND tenant = ?2 AND aggregatetype = ?3 AND aggregateid = ?4";
            let mut query = conn.prepare_cached(sql)?;
            let read =
                |row: &Row<'_>| Ok(row.get::<_, Option<i64>>(0)?.map(|oldest| elapsed_between(Timestamp(oldest), now)));
            keys.iter().map(|key| query.query_row((key.0, &key.1, &key.2, &key.3), read)).collect()
        })
        .await
    }

    async fn is_empty(&self) -> Result<bool, StoreError> {
        self.query("is_empty", move |conn| {
            let mut query = conn.prepare_cached("SELECT NOT EXISTS (SELECT 1 FROM saga_outbox)")?;
            query.query_row((), |row| row.get(0))
        })
        .await
    }

    async fn depth(&self) -> Result<OutboxDepth, StoreError> {
        let now = self.now();
        self.query("depth", move |conn| {
            let (rows, oldest) = conn
                .prepare_cached("SELECT count(*), min(committed_at) FROM saga_outbox")?
                .query_row((), |row| Ok((rows::unsigned(row, 0)?, row.get::<_, Option<i64>>(1)?)))?;
            let parked =
                conn.prepare_cached("SELECT count(*) FROM saga_parked")?.query_row((), |row| rows::unsigned(row, 0))?;
            let oldest_age = oldest.map(|oldest| elapsed_between(Timestamp(oldest), now));
            Ok(OutboxDepth { rows, oldest_age, parked })
        })
        .await
    }
}

fn lease_lanes(session: &Session, lease: Lease, limit: usize) -> rusqlite::Result<Vec<LeasedLane>> {
    let now = session.now();
    let conn = &session.conn;
    let mut leased = Vec::new();
    // Nearly always the outbox is empty, or almost.
    let is_empty =
        conn.prepare_cached("SELECT 1 FROM saga_outbox LIMIT 1")?.query_row((), |_| Ok(())).optional()?.is_none();
    if is_empty {
        return Ok(leased);
    }
    for lane in 0..LANES {
        if leased.len() >= limit {
            break;
        }
        if !has_rows(conn, lane, now)? || !is_free(session, lane, lease.owner, now)? {
            continue;
        }
        let epoch = conn
            .prepare_cached(
                "INSERT INTO saga_lanes (lane, epoch, owner, leased_until) VALUES (?1, 1, ?2, ?3) \
                 ON CONFLICT (lane) DO UPDATE SET epoch = epoch + 1, owner = excluded.owner, \
                 leased_until = excluded.leased_until RETURNING epoch",
            )?
            .query_row((lane, lease.owner.0, plus(now, lease.ttl).0), |row| rows::unsigned(row, 0))?;
        leased.push(LeasedLane { lane, epoch });
    }
    Ok(leased)
}

fn has_rows(conn: &Connection, lane: u8, now: Timestamp) -> rusqlite::Result<bool> {
    let sql = concat!("SELECT 1 FROM saga_outbox o WHERE o.lane = ?1 AND ", may_go!(), " LIMIT 1");
    Ok(conn.prepare_cached(sql)?.query_row((lane, now.0), |_| Ok(())).optional()?.is_some())
}

fn is_free(session: &Session, lane: u8, owner: MemberId, now: Timestamp) -> rusqlite::Result<bool> {
    let held = session
        .conn
        .prepare_cached("SELECT owner FROM saga_lanes WHERE lane = ?1 AND leased_until > ?2")?
        .query_row((lane, now.0), |row| row.get(0).map(MemberId))
        .optional()?;
    Ok(held.is_none_or(|holder| holder == owner || !session.shared.members.is_alive(holder, now)))
}

/// An ordering key keeps the places of its rows in the order of the commits, so that no key is starved, and fills them
/// by position. The second list parks the keys of rows that cannot be read, behind which no row of their keys goes.
fn read_lane(
    conn: &Connection,
    lane: LeasedLane,
    limit: usize,
    now: Timestamp,
) -> rusqlite::Result<(Vec<OutboxRow>, Vec<NewParked>)> {
    let is_held = conn
        .prepare_cached("SELECT 1 FROM saga_lanes WHERE lane = ?1 AND epoch = ?2")?
        .query_row((lane.lane, signed(lane.epoch)), |_| Ok(()))
        .optional()?
        .is_some();
    if !is_held {
        return Ok((Vec::new(), Vec::new()));
    }
    let order = places(conn, lane.lane, limit, now)?;
    let mut statement = conn.prepare_cached(
        "SELECT id, tenant, aggregatetype, aggregateid, type, payload, position, committed_at, kind, headers, \
         coalesce((SELECT k.attempts FROM saga_parked k WHERE k.message = saga_outbox.id), 0) \
         FROM saga_outbox WHERE seq = ?1",
    )?;
    let (mut readable, mut parked, mut held) = (Vec::with_capacity(order.len()), Vec::new(), HashSet::new());
    for seq in order {
        let mut found = statement.query([seq])?;
        let Some(row) = found.next()? else { continue };
        if !held.is_empty() && held.contains(&ordering_key(row)?) {
            continue;
        }
        match rows::readable(OutboxRow::from_row(row))? {
            Ok(row) => readable.push(row),
            Err(problem) => {
                let (message, attempts) = (rows::message_id(row, 0)?, row.get::<_, u32>(10).unwrap_or_default());
                if attempts == 0 {
                    tracing::error!(message_id = %message, error = problem, "outbox message unreadable");
                }
                held.insert(ordering_key(row)?);
                parked.push(NewParked::unreadable(message, attempts, &problem));
            }
        }
    }
    Ok((readable, parked))
}

fn ordering_key(row: &Row<'_>) -> rusqlite::Result<(String, String, String)> {
    Ok((row.get(1)?, row.get(2)?, row.get(3)?))
}

/// The `seq` numbers of a lane's rows in sending order: at most `limit`.
fn places(conn: &Connection, lane: u8, limit: usize, now: Timestamp) -> rusqlite::Result<Vec<i64>> {
    let sql = concat!(
        "SELECT o.seq, o.position, o.tenant, o.aggregatetype, o.aggregateid FROM saga_outbox o WHERE o.lane = ?1 AND ",
        may_go!(),
        " ORDER BY o.seq"
    );
    let mut keys: HashMap<(String, String, String), usize> = HashMap::new();
    let mut rows_of_key: Vec<Vec<(i64, i64)>> = Vec::new();
    let mut places = Vec::new();
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query((lane, now.0))?;
    while let Some(row) = rows.next()? {
        let number = rows_of_key.len();
        let key = *keys.entry((row.get(2)?, row.get(3)?, row.get(4)?)).or_insert(number);
        if key == number {
            rows_of_key.push(Vec::new());
        }
        rows_of_key[key].push((row.get(1)?, row.get(0)?));
        if places.len() < limit {
            places.push(key);
        }
    }
    let mut sorted: Vec<VecDeque<(i64, i64)>> = Vec::with_capacity(rows_of_key.len());
    for mut rows in rows_of_key {
        rows.sort_unstable();
        sorted.push(rows.into());
    }
    Ok(places.into_iter().filter_map(|key| sorted[key].pop_front()).map(|(_, seq)| seq).collect())
}

impl FromRow for OutboxRow {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: rows::message_id(row, 0)?,
            tenant: rows::tenant(row, 1)?,
            aggregate_type: row.get(2)?,
            aggregate_id: row.get(3)?,
            event_type: row.get(4)?,
            payload: row.get(5)?,
            position: rows::unsigned(row, 6)?,
            committed_at: Timestamp(row.get(7)?),
            kind: rows::parsed(row, 8, MessageKind::parse)?,
            headers: rows::headers(row, 9)?,
            attempts: row.get(10)?,
        })
    }
}

impl FromRow for ParkedKey {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            tenant: rows::tenant(row, 0)?,
            aggregate_type: row.get(1)?,
            aggregate_id: row.get(2)?,
            message: rows::message_id(row, 3)?,
            attempts: row.get(4)?,
            error: row.get(5)?,
            since: Timestamp(row.get(6)?),
            retry_at: row.get::<_, Option<i64>>(7)?.map(Timestamp),
        })
    }
}

fn delete(conn: &Connection, message: MessageId) -> rusqlite::Result<Option<Vec<u8>>> {
    let sql = "DELETE FROM saga_outbox WHERE id = ?1 RETURNING payload";
    conn.prepare_cached(sql)?.query_row(params![id_bytes(message)], |row| row.get(0)).optional()
}

fn unpark(conn: &Connection, message: MessageId) -> rusqlite::Result<bool> {
    Ok(conn.prepare_cached("DELETE FROM saga_parked WHERE message = ?1")?.execute(params![id_bytes(message)])? == 1)
}
