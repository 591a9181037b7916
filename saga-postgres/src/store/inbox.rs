//! Received messages.

use std::time::Duration;

use async_trait::async_trait;
use saga_core::store::{
    ClaimedMessage, ClaimedMessages, Inbox, Lease, Message, NewReceived, ReceivedBatch, StoreError, UnreadableWork,
    WorkId, WorkRef,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use crate::clock::{duration, micros};
use crate::error::store_error;
use crate::rows::arrays::column;
use crate::rows::rows::{self, FromRow, readable};
use crate::store::store::PostgresStore;

/// The definition number of a row of `work` that keeps a message. No definition has this number.
const MESSAGES: i32 = 0;

#[async_trait]
impl Inbox for PostgresStore {
    async fn receive(&self, messages: Vec<NewReceived>) -> Result<ReceivedBatch, StoreError> {
        // Two calls that insert the same ids in different orders would wait for each other. Of several messages with
        // one id the first is inserted.
        let mut order: Vec<&NewReceived> = messages.iter().collect();
        order.sort_by_key(|received| received.message.id);
        order.dedup_by_key(|received| received.message.id);
        let query = sqlx::query(self.sql("SELECT * FROM {schema}.receive_messages($1, $2, $3, $4, $5, $6)"))
            .bind(column(&order, |received| received.message.id.0))
            .bind(column(&order, |received| received.work.0))
            .bind(column(&order, |received| received.message.tenant.as_str()))
            .bind(column(&order, |received| received.message.encode()))
            .bind(column(&order, |received| received.lease.map(|lease| lease.owner.0)))
            .bind(column(&order, |received| received.lease.map(|lease| micros(lease.ttl))));
        let rows = self.call_rows("receive", query).await?;
        let read = |row: &PgRow| Ok::<_, sqlx::Error>((rows::moment(row, 0)?, row.try_get::<Vec<i64>, _>(1)?));
        let row = rows.first().ok_or(sqlx::Error::RowNotFound);
        let (now, new) = row.and_then(read).map_err(|error| store_error("receive", error))?;
        Ok(ReceivedBatch { new: messages.iter().map(|received| new.contains(&received.work.0)).collect(), now })
    }

    async fn claim_received(&self, lease: Lease, limit: usize) -> Result<ClaimedMessages, StoreError> {
        let sql = "SELECT c.id, c.epoch, c.payload, c.attempts, c.suspect, c.next_due_micros, clock_timestamp() \
             FROM {schema}.claim_work($1, $2, $3, $4) c";
        let query = sqlx::query(self.sql(sql))
            .bind(vec![MESSAGES])
            .bind(lease.owner.0)
            .bind(micros(lease.ttl))
            .bind(rows::limit(limit));
        let rows = self.call_rows("claim_received", query).await?;
        claimed(&rows).map_err(|error| store_error("claim_received", error))
    }

    async fn forget_received(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        // They are locked first: an id that a replay receives again at this moment is not deleted. The time is read once, so
        // that the index is read only as far as they are old.
        let sql = "WITH old AS MATERIALIZED (SELECT r.id FROM {schema}.received r \
             WHERE r.received_at < (SELECT clock_timestamp() - $1 * interval '1 microsecond') \
             AND NOT EXISTS (SELECT 1 FROM {schema}.work w WHERE w.id = r.work) \
             ORDER BY r.received_at LIMIT $2 FOR UPDATE OF r SKIP LOCKED) \
             DELETE FROM {schema}.received r USING old o WHERE r.id = o.id";
        let query = sqlx::query(self.sql(sql)).bind(micros(older_than)).bind(rows::limit(limit));
        self.execute("forget_received", query).await
    }
}

impl PostgresStore {
    /// Inserts a message again, whether or not its id was received before.
    pub(crate) async fn receive_again(
        &self,
        conn: &mut PgConnection,
        work: WorkId,
        message: &Message,
    ) -> Result<(), sqlx::Error> {
        // The earlier row is gone, or is another attempt at the same message, which its step key shows.
        let known = "INSERT INTO {schema}.received (id, received_at, work) VALUES ($1, clock_timestamp(), $2) \
             ON CONFLICT (id) DO UPDATE SET received_at = excluded.received_at, work = excluded.work";
        let known = sqlx::query(self.sql(known)).bind(message.id.0).bind(work.0);
        known.persistent(false).execute(&mut *conn).await?;
        let row = "INSERT INTO {schema}.work (id, saga, tenant, key, kind, step, definition, epoch, due_at, payload) \
             VALUES ($1, 0, $2, '', 'message', '', $3, 1, clock_timestamp(), $4)";
        let row = sqlx::query(self.sql(row)).bind(work.0).bind(message.tenant.as_str());
        row.bind(MESSAGES).bind(message.encode()).persistent(false).execute(conn).await?;
        Ok(())
    }
}

/// The last row has the time until the next message is due.
fn claimed(rows: &[PgRow]) -> Result<ClaimedMessages, sqlx::Error> {
    let mut claimed = ClaimedMessages::default();
    for row in rows {
        claimed.now = rows::moment(row, 6)?;
        match row.try_get::<Option<i64>, _>(0)? {
            Some(id) => match readable(ClaimedMessage::from_row(row))? {
                Ok(message) => claimed.messages.push(message),
                Err(problem) => claimed.unreadable.push(UnreadableWork { work: WorkId(id), problem }),
            },
            None => claimed.next_due_in = row.try_get::<Option<i64>, _>(5)?.map(duration),
        }
    }
    Ok(claimed)
}

impl FromRow for ClaimedMessage {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            work: WorkRef { id: WorkId(row.try_get(0)?), epoch: rows::unsigned(row, 1)? },
            message: rows::message(row, 2)?,
            attempts: rows::narrow(row, 3)?,
            recovered: row.try_get(4)?,
        })
    }
}
