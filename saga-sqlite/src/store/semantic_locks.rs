//! Semantic locks.

use std::collections::BTreeSet;

use async_trait::async_trait;
use rusqlite::{Connection, Row};
use saga_core::store::{
    Entity, LockAnswer, LockFilter, LockRequest, LockState, SagaId, SemanticLocks, StoreError, StoredLock, Timestamp,
    Unlock, WorkId,
};

use crate::clock::elapsed_between;
use crate::statements::lock_table::{
    blockers, end_wait, entities_of, hand_over, has_work, insert, leave_queue, number_of, settle, unlock,
};
use crate::statements::rows::{self, FromRow, limit, signed};
use crate::store::store::SqliteStore;

const COLUMNS: &str = "SELECT number, tenant, saga, key, owner, name, state, other, work, asked_at, granted_at, waits_until \
     FROM saga_lock_requests ";

#[async_trait]
impl SemanticLocks for SqliteStore {
    async fn ask_for_locks(&self, requests: Vec<LockRequest>) -> Result<Vec<LockAnswer>, StoreError> {
        self.call("ask_for_locks", move |session| {
            let now = session.now();
            Ok(requests.iter().map(|request| ask(&session.conn, request, now)).collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn end_abandoned_locks(&self, limit: usize) -> Result<u64, StoreError> {
        self.call("end_abandoned_locks", move |session| {
            let abandoned = abandoned(&session.conn, limit)?;
            unlock(&session.conn, &abandoned, session.now())?;
            Ok(abandoned.len() as u64)
        })
        .await
    }

    async fn locks(&self, filter: &LockFilter) -> Result<Vec<StoredLock>, StoreError> {
        let filter = filter.clone();
        self.query("locks", move |conn| {
            let sql = format!(
                "{COLUMNS} r WHERE tenant = ?1 AND (?2 IS NULL OR saga = ?2) AND (?3 IS NULL OR EXISTS (\
                     SELECT 1 FROM saga_locked_entities e \
                     WHERE e.tenant = ?1 AND e.kind = ?3 AND e.id = ?4 AND e.number = r.number)) \
                 AND number > ?5 ORDER BY number LIMIT ?6"
            );
            let entity = filter.entity.as_ref();
            let arguments = (
                filter.tenant.as_str(),
                filter.saga.map(|saga| saga.0),
                entity.map(Entity::kind),
                entity.map(Entity::id),
                filter.after.map_or(-1, signed),
                limit(filter.limit),
            );
            let mut list = conn.prepare_cached(&sql)?;
            let found: Vec<Stored> = list.query_map(arguments, Stored::from_row)?.collect::<Result<_, _>>()?;
            found.into_iter().map(|stored| stored.with_entities(conn)).collect()
        })
        .await
    }
}

/// The locks and requests of steps whose rows are gone, by their numbers.
fn abandoned(conn: &Connection, at_most: usize) -> rusqlite::Result<Vec<Unlock>> {
    conn.prepare_cached(
        "SELECT r.tenant, r.saga, r.name FROM saga_lock_requests r \
         WHERE NOT EXISTS (SELECT 1 FROM saga_work w WHERE w.id = r.work) AND EXISTS (\
             SELECT 1 FROM saga_locked_entities e WHERE e.number = r.number AND e.kind GLOB 'step:*') \
         ORDER BY r.number LIMIT ?1",
    )?
    .query_map([limit(at_most)], |row| Ok(Unlock::Lock(rows::tenant(row, 0)?, SagaId(row.get(1)?), row.get(2)?)))?
    .collect()
}

fn ask(conn: &Connection, request: &LockRequest, now: Timestamp) -> rusqlite::Result<LockAnswer> {
    if !has_work(conn, request)? {
        return Ok(LockAnswer::Gone);
    }
    let number = if let Some(number) = number_of(conn, request.saga.0, &request.name)? {
        ask_again(conn, request, number, now)?;
        number
    } else {
        let number = insert(conn, request, None, now)?;
        settle(conn, request, number, now)?;
        number
    };
    let Stored { lock, until } = stored(conn, number)?;
    Ok(match lock.state {
        LockState::Granted => {
            let entities = entities_of(conn, number)?;
            LockAnswer::Granted(entities.into_iter().filter_map(|(_, token)| token).collect())
        }
        LockState::Waiting => {
            let sql = "UPDATE saga_work SET owner = NULL, leased_until = NULL, due_at = ?2 WHERE id = ?1";
            conn.prepare_cached(sql)?.execute((request.work.id.0, until.0))?;
            LockAnswer::Waits(elapsed_between(now, until))
        }
        LockState::TimedOut(holder) => LockAnswer::TimedOut(holder),
        LockState::Deadlock(with) => LockAnswer::Deadlock(with),
    })
}

/// The saga asks once more, maybe by another work row.
fn ask_again(conn: &Connection, request: &LockRequest, number: i64, now: Timestamp) -> rusqlite::Result<()> {
    conn.prepare_cached("UPDATE saga_lock_requests SET work = ?2 WHERE number = ?1")?
        .execute((number, request.work.id.0))?;
    let Stored { lock, until } = stored(conn, number)?;
    if lock.state != LockState::Waiting || now < until {
        return Ok(());
    }
    let in_front = blockers(conn, number)?.into_iter().next();
    end_wait(conn, number, "timed-out", in_front.as_ref().unwrap_or(&request.owner))?;
    let entities: BTreeSet<_> = leave_queue(conn, number)?.into_iter().collect();
    hand_over(conn, &entities, now)
}

fn stored(conn: &Connection, number: i64) -> rusqlite::Result<Stored> {
    conn.prepare_cached(&format!("{COLUMNS} WHERE number = ?1"))?.query_row([number], Stored::from_row)
}

/// A row of the table of requests, without its entities.
struct Stored {
    lock: StoredLock,
    until: Timestamp,
}

impl Stored {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { lock: StoredLock::from_row(row)?, until: Timestamp(row.get(11)?) })
    }

    fn with_entities(self, conn: &Connection) -> rusqlite::Result<StoredLock> {
        let number = signed(self.lock.number);
        let (entities, waits_for) = (entities_of(conn, number)?, blockers(conn, number)?);
        Ok(StoredLock { entities, waits_for, ..self.lock })
    }
}

impl FromRow for StoredLock {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let state = match rows::text(row, 6)? {
            "waiting" => LockState::Waiting,
            "granted" => LockState::Granted,
            "timed-out" => LockState::TimedOut(rows::key(row, 7)?),
            "deadlock" => LockState::Deadlock(rows::key(row, 7)?),
            other => return Err(rows::unreadable(6, format!("{other:?} is not a value of this version"))),
        };
        Ok(Self {
            number: rows::unsigned(row, 0)?,
            tenant: rows::tenant(row, 1)?,
            saga: SagaId(row.get(2)?),
            key: rows::key(row, 3)?,
            owner: rows::key(row, 4)?,
            name: row.get(5)?,
            entities: Vec::new(),
            state,
            work: WorkId(row.get(8)?),
            asked_at: Timestamp(row.get(9)?),
            granted_at: row.get::<_, Option<i64>>(10)?.map(Timestamp),
            waits_for: Vec::new(),
        })
    }
}
