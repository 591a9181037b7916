//! Received messages.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{OptionalExtension as _, Row, params};
use saga_core::store::{
    ClaimedMessage, ClaimedMessages, Inbox, Lease, Message, NewReceived, ReceivedBatch, StoreError, Timestamp,
    UnreadableWork, WorkId, WorkRef,
};

use crate::clock::plus;
use crate::statements::claims::{candidates, next_due_in};
use crate::statements::rows::{self, FromRow, id_bytes};
use crate::store::store::SqliteStore;
use crate::writer::session::Session;

/// The definition number of a row of `saga_work` that keeps a message. No definition has this number.
pub(crate) const MESSAGES: i64 = 0;

#[async_trait]
impl Inbox for SqliteStore {
    async fn receive(&self, messages: Vec<NewReceived>) -> Result<ReceivedBatch, StoreError> {
        self.call("receive", move |session| {
            let now = session.now();
            let mut new = Vec::with_capacity(messages.len());
            for received in &messages {
                new.push(receive(session, received, now)?);
            }
            Ok(ReceivedBatch { new, now })
        })
        .await
    }

    async fn claim_received(&self, lease: Lease, limit: usize) -> Result<ClaimedMessages, StoreError> {
        self.call("claim_received", move |session| Ok(claim(session, lease, limit)?)).await
    }

    async fn forget_received(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        self.call("forget_received", move |session| {
            let until = session.now().0.saturating_sub(crate::clock::micros(older_than));
            let deleted = session
                .conn
                .prepare_cached(
                    "DELETE FROM saga_received WHERE id IN (SELECT r.id FROM saga_received r WHERE r.received_at < ?1 \
                     AND NOT EXISTS (SELECT 1 FROM saga_work w WHERE w.id = r.work) LIMIT ?2)",
                )?
                .execute((until, rows::limit(limit)))?;
            Ok(deleted as u64)
        })
        .await
    }
}

fn receive(session: &mut Session, received: &NewReceived, now: Timestamp) -> rusqlite::Result<bool> {
    let sql = "INSERT INTO saga_received (id, received_at, work) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let row = params![id_bytes(received.message.id), now.0, received.work.0];
    if session.conn.prepare_cached(sql)?.execute(row)? == 0 {
        return Ok(false);
    }
    if let Some(lease) = received.lease {
        session.note_owner(lease.owner);
    }
    insert_message(session, received.work, &received.message, received.lease, now)?;
    Ok(true)
}

/// Inserts a message again, whether or not its id was received before.
pub(crate) fn receive_again(
    session: &Session,
    work: WorkId,
    message: &Message,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO saga_received (id, received_at, work) VALUES (?1, ?2, ?3) \
         ON CONFLICT (id) DO UPDATE SET received_at = excluded.received_at, work = excluded.work";
    session.conn.prepare_cached(sql)?.execute(params![id_bytes(message.id), now.0, work.0])?;
    insert_message(session, work, message, None, now)
}

fn insert_message(
    session: &Session,
    work: WorkId,
    message: &Message,
    lease: Option<Lease>,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO saga_work (id, saga, tenant, key, kind, step, definition, epoch, due_at, owner, \
         leased_until, attempts, maybe, suspect, payload) VALUES (?1, 0, ?2, '', 'message', '', ?3, 1, ?4, ?5, ?6, 0, \
         0, 0, ?7)";
    let owner = lease.map(|lease| lease.owner.0);
    let until = lease.map(|lease| plus(now, lease.ttl).0);
    let row = params![work.0, message.tenant.as_str(), MESSAGES, now.0, owner, until, message.encode()];
    session.conn.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

fn claim(session: &mut Session, lease: Lease, limit: usize) -> rusqlite::Result<ClaimedMessages> {
    let now = session.now();
    let mut claimed = ClaimedMessages { now, ..ClaimedMessages::default() };
    // One more than asked for, to know whether another row waits.
    let found = candidates(session, &[MESSAGES], now, limit.saturating_add(1), true)?;
    let until = plus(now, lease.ttl).0;
    for candidate in found.iter().take(limit) {
        // Only a lease that its owner did not release is still on a free row: that owner vanished.
        let message = session
            .conn
            .prepare_cached(
                "UPDATE saga_work SET epoch = epoch + 1, suspect = suspect OR owner IS NOT NULL, owner = ?2, \
                 leased_until = ?3 WHERE id = ?1 RETURNING id, epoch, payload, attempts, suspect",
            )?
            .query_row(params![candidate.id, lease.owner.0, until], ClaimedMessage::from_row)
            .optional();
        match rows::readable(message)? {
            Ok(message) => claimed.messages.extend(message),
            Err(problem) => claimed.unreadable.push(UnreadableWork { work: WorkId(candidate.id), problem }),
        }
    }
    claimed.next_due_in =
        if found.len() > limit { Some(Duration::ZERO) } else { next_due_in(session, &[MESSAGES], now, true)? };
    session.note_owner(lease.owner);
    Ok(claimed)
}

impl FromRow for ClaimedMessage {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            work: WorkRef { id: WorkId(row.get(0)?), epoch: rows::unsigned(row, 1)? },
            message: rows::message(row, 2)?,
            attempts: row.get(3)?,
            recovered: row.get(4)?,
        })
    }
}
