//! The outbox.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use saga_core::key::Tenant;
use saga_core::store::{
    DeadLetterState, Lease, LeasedLane, Message, MessageId, MessageKind, NewDeadLetter, NewMessage, NewParked, Outbox,
    OutboxDepth, OutboxRow, ParkedKey, StoreError,
};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::clock::{duration, micros};
use crate::error::store_error;
use crate::rows::arrays::column;
use crate::rows::rows::{self, FromRow, clean, signed};
use crate::store::store::PostgresStore;

/// The condition that a row `o` is due and its key is not parked.
const MAY_GO: &str = "(o.due_at IS NULL OR o.due_at <= clock_timestamp()) AND NOT EXISTS (SELECT 1 FROM {schema}.parked k WHERE k.tenant = o.tenant \
     AND k.aggregatetype = o.aggregatetype AND k.aggregateid = o.aggregateid \
     AND (k.retry_at IS NULL OR k.retry_at > clock_timestamp()))";

#[async_trait]
impl Outbox for PostgresStore {
    async fn lease_lanes(&self, lease: Lease, limit: usize) -> Result<Vec<LeasedLane>, StoreError> {
        // The condition on the lane is checked again when its row is locked, so that two relays never get the same
        // lane. That check does not see a process that joined since the query began, and would take it for dead: so a
        // lane whose epoch has grown since then is left. The query asks for the first row in the index's order, not for
        // the existence of a row: that could use a bitmap scan, which visits every row that was sent since the last
        // vacuum, at each poll. The lanes come in any order, so that under load each of them has its turn.
        let sql = format!(
            "WITH free AS MATERIALIZED (SELECT l.lane FROM {{schema}}.lanes l \
             JOIN {{schema}}.lanes seen ON seen.lane = l.lane AND seen.epoch = l.epoch \
             WHERE (l.owner IS NULL OR l.owner = $1 OR l.leased_until <= clock_timestamp() OR NOT EXISTS (SELECT 1 FROM {{schema}}.members m \
                 WHERE m.id = l.owner AND m.alive_until > clock_timestamp())) \
             AND (SELECT o.seq FROM {{schema}}.outbox o WHERE o.lane = l.lane AND {MAY_GO} ORDER BY o.seq LIMIT 1) IS NOT NULL \
             ORDER BY random() LIMIT $3 FOR UPDATE OF l SKIP LOCKED) \
             UPDATE {{schema}}.lanes l SET epoch = l.epoch + 1, owner = $1, \
             leased_until = clock_timestamp() + $2 * interval '1 microsecond' \
             FROM free f WHERE l.lane = f.lane RETURNING l.lane, l.epoch"
        );
        let query = sqlx::query(self.sql(&sql)).bind(lease.owner.0).bind(micros(lease.ttl)).bind(rows::limit(limit));
        let rows = self.write_rows("lease_lanes", query).await?;
        rows.iter().map(lane).collect::<Result<_, _>>().map_err(|error| store_error("lease_lanes", error))
    }

    async fn renew_lanes(&self, lanes: &[LeasedLane], lease: Lease) -> Result<Vec<bool>, StoreError> {
        let sql = "WITH held AS MATERIALIZED (SELECT l.lane FROM unnest($1::smallint[], $2::bigint[]) u (lane, epoch) \
             CROSS JOIN LATERAL (SELECT l.lane FROM {schema}.lanes l WHERE l.lane = u.lane AND l.epoch = u.epoch FOR UPDATE) l) \
             UPDATE {schema}.lanes l SET owner = $3, leased_until = clock_timestamp() + $4 * interval '1 microsecond' \
             FROM held h WHERE l.lane = h.lane RETURNING l.lane, l.epoch";
        let (numbers, epochs) = columns(lanes);
        let query = sqlx::query(self.sql(sql)).bind(numbers).bind(epochs).bind(lease.owner.0).bind(micros(lease.ttl));
        let rows = self.write_rows("renew_lanes", query).await?;
        let held = rows.iter().map(lane).collect::<Result<Vec<_>, _>>().map_err(|e| store_error("renew_lanes", e))?;
        Ok(lanes.iter().map(|lane| held.contains(lane)).collect())
    }

    async fn release_lanes(&self, lanes: &[LeasedLane]) -> Result<(), StoreError> {
        let sql = "UPDATE {schema}.lanes l SET owner = NULL, leased_until = NULL \
             FROM unnest($1::smallint[], $2::bigint[]) u (lane, epoch) WHERE l.lane = u.lane AND l.epoch = u.epoch";
        let (numbers, epochs) = columns(lanes);
        self.execute("release_lanes", sqlx::query(self.sql(sql)).bind(numbers).bind(epochs)).await.map(drop)
    }

    async fn read_lane(&self, lane: LeasedLane, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        self.read_lanes(&[lane], limit).await
    }

    /// An ordering key keeps the places of its rows in the order in which they were inserted, so that no key is
    /// starved, and fills them by position. Only rows of keys with such a place are sorted by position: after an outage
    /// of the transport hundreds of thousands wait.
    async fn read_lanes(&self, lanes: &[LeasedLane], limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        let sql = format!(
            "WITH waiting AS MATERIALIZED (SELECT o.seq, o.tenant, o.aggregatetype, o.aggregateid, o.position \
                 FROM {{schema}}.outbox o WHERE o.lane = ANY (ARRAY(SELECT l.lane FROM {{schema}}.lanes l \
                 JOIN unnest($1::smallint[], $2::bigint[]) u (lane, epoch) ON l.lane = u.lane AND l.epoch = u.epoch)) \
                 AND {MAY_GO}), \
             places AS MATERIALIZED (SELECT seq, tenant, aggregatetype, aggregateid, \
                 row_number() OVER (PARTITION BY tenant, aggregatetype, aggregateid ORDER BY seq) AS number \
                 FROM (SELECT * FROM waiting ORDER BY seq LIMIT $3) w), \
             rows AS (SELECT seq, tenant, aggregatetype, aggregateid, \
                 row_number() OVER (PARTITION BY tenant, aggregatetype, aggregateid ORDER BY position, seq) AS number \
                 FROM waiting WHERE (tenant, aggregatetype, aggregateid) IN (SELECT tenant, aggregatetype, aggregateid FROM places)) \
             SELECT o.id, o.tenant, o.aggregatetype, o.aggregateid, o.type, o.payload, o.position, o.committed_at, \
             o.kind, o.headers, coalesce(k.attempts, 0) FROM places p \
             JOIN rows r ON r.number = p.number AND r.tenant = p.tenant AND r.aggregatetype = p.aggregatetype \
                 AND r.aggregateid = p.aggregateid \
             JOIN {{schema}}.outbox o ON o.seq = r.seq \
             LEFT JOIN {{schema}}.parked k ON k.message = o.id ORDER BY p.seq"
        );
        let (numbers, epochs) = columns(lanes);
        let query = sqlx::query(self.sql(&sql)).bind(numbers).bind(epochs).bind(rows::limit(limit));
        let rows = self.read_rows("read_lane", query).await?;
        let (rows, unreadable) = readable_rows(&rows).map_err(|error| store_error("read_lane", error))?;
        if !unreadable.is_empty() {
            self.park(&unreadable).await?;
        }
        Ok(rows)
    }

    async fn sent(&self, messages: &[MessageId]) -> Result<(), StoreError> {
        // The commit does not wait for the disk. A row that a crash brings back is sent again, and its receiver knows it by its id.
        let sql = "WITH gone AS (DELETE FROM {schema}.parked WHERE message = ANY ($1)) \
             DELETE FROM {schema}.outbox WHERE id = ANY ($1) \
             AND (SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL";
        let ids: Vec<uuid::Uuid> = messages.iter().map(|message| message.0).collect();
        self.execute("sent", sqlx::query(self.sql(sql)).bind(ids)).await.map(drop)
    }

    async fn park(&self, parked: &[NewParked]) -> Result<(), StoreError> {
        let sql = "INSERT INTO {schema}.parked AS k (tenant, aggregatetype, aggregateid, message, attempts, error, since, \
             retry_at) \
             SELECT o.tenant, o.aggregatetype, o.aggregateid, o.id, u.attempts, u.error, clock_timestamp(), \
             clock_timestamp() + u.retry_in * interval '1 microsecond' \
             FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[]) u (id, attempts, error, retry_in) \
             JOIN {schema}.outbox o ON o.id = u.id ORDER BY o.tenant, o.aggregatetype, o.aggregateid \
             ON CONFLICT (tenant, aggregatetype, aggregateid) DO UPDATE SET message = excluded.message, \
             attempts = excluded.attempts, error = excluded.error, retry_at = excluded.retry_at";
        let query = sqlx::query(self.sql(sql))
            .bind(column(parked, |parked| parked.message.0))
            .bind(column(parked, |parked| i64::from(parked.attempts)))
            .bind(column(parked, |parked| clean(&parked.error)))
            .bind(column(parked, |parked| parked.retry_in.map(micros)));
        self.execute("park", query).await.map(drop)
    }

    async fn parked(&self, tenant: Option<&Tenant>, limit: usize) -> Result<Vec<ParkedKey>, StoreError> {
        let sql = "SELECT tenant, aggregatetype, aggregateid, message, attempts, error, since, retry_at FROM {schema}.parked \
             WHERE $1::text IS NULL OR tenant = $1 ORDER BY tenant, aggregatetype, aggregateid LIMIT $2";
        let query = sqlx::query(self.sql(sql)).bind(tenant.map(|tenant| tenant.as_str().to_owned()));
        let rows = self.read_rows("parked", query.bind(rows::limit(limit))).await?;
        rows.iter().map(ParkedKey::from_row).collect::<Result<_, _>>().map_err(|error| store_error("parked", error))
    }

    async fn release(&self, message: MessageId) -> Result<bool, StoreError> {
        let sql = self.sql("DELETE FROM {schema}.parked WHERE message = $1");
        Ok(self.execute("release", sqlx::query(sql).bind(message.0)).await? == 1)
    }

    async fn discard(&self, message: MessageId, letter: &NewDeadLetter, note: &str) -> Result<bool, StoreError> {
        let sql = "WITH gone AS (DELETE FROM {schema}.parked WHERE message = $1 RETURNING message), \
             discarded AS (DELETE FROM {schema}.outbox o USING gone g WHERE o.id = g.message RETURNING o.payload) \
             INSERT INTO {schema}.dead_letters (id, fingerprint, tenant, reason, detail, source, headers, payload, message, \
             attempts, seen, buried_at, state, decided_at, note) \
             SELECT $2, $3, $4, $5, $6, $7, $8, coalesce((SELECT payload FROM discarded), ''), $9, $10, 1, \
             clock_timestamp(), $11, clock_timestamp(), $12 FROM gone";
        let query = sqlx::query(self.sql(sql))
            .bind(message.0)
            .bind(letter.id.0)
            .bind(letter.fingerprint.to_vec())
            .bind(letter.tenant.as_str().to_owned())
            .bind(letter.reason.as_str())
            .bind(clean(&letter.detail))
            .bind(clean(&letter.source))
            .bind(serde_json::json!(letter.headers).to_string())
            .bind(letter.message.as_ref().map(Message::encode))
            .bind(i64::from(letter.attempts))
            .bind(DeadLetterState::Discarded.as_str())
            .bind(clean(note));
        Ok(self.execute("discard", query).await? == 1)
    }

    async fn oldest_ages(&self, messages: &[NewMessage]) -> Result<Vec<Option<Duration>>, StoreError> {
        let sql = "SELECT (SELECT (extract(epoch FROM clock_timestamp() - min(o.committed_at)) * 1000000)::bigint \
             FROM {schema}.outbox o WHERE o.lane = u.lane AND o.tenant = u.tenant \
             AND o.aggregatetype = u.aggregatetype AND o.aggregateid = u.aggregateid) \
             FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[]) \
             WITH ORDINALITY u (lane, tenant, aggregatetype, aggregateid, number) ORDER BY u.number";
        let query = sqlx::query(self.sql(sql))
            .bind(column(messages, |message| i16::from(message.lane)))
            .bind(column(messages, |message| message.tenant.as_str()))
            .bind(column(messages, |message| message.aggregate_type.as_str()))
            .bind(column(messages, |message| message.aggregate_id.as_str()));
        let rows = self.read_rows("oldest_ages", query).await?;
        let read = |row: &PgRow| Ok(row.try_get::<Option<i64>, _>(0)?.map(duration));
        rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| store_error("oldest_ages", error))
    }

    async fn is_empty(&self) -> Result<bool, StoreError> {
        let sql = self.sql("SELECT NOT EXISTS (SELECT FROM {schema}.outbox)");
        let rows = self.read_rows("is_empty", sqlx::query(sql)).await?;
        let read = |row: &PgRow| row.try_get(0);
        Ok(rows.first().map(read).transpose().map_err(|error| store_error("is_empty", error))?.unwrap_or(true))
    }

    async fn depth(&self) -> Result<OutboxDepth, StoreError> {
        let sql = "SELECT count(*), (extract(epoch FROM clock_timestamp() - min(committed_at)) * 1000000)::bigint, \
             (SELECT count(*) FROM {schema}.parked) FROM {schema}.outbox";
        let rows = self.read_rows("depth", sqlx::query(self.sql(sql))).await?;
        let read = |row: &PgRow| {
            let oldest_age = row.try_get::<Option<i64>, _>(1)?.map(duration);
            Ok(OutboxDepth { rows: rows::unsigned(row, 0)?, oldest_age, parked: rows::unsigned(row, 2)? })
        };
        let depth = rows.first().map(read).transpose().map_err(|error| store_error("depth", error))?;
        Ok(depth.unwrap_or_default())
    }
}

/// The rows that can be read, and what parks the ordering keys of the others. No row goes that is behind an unreadable one
/// of its key.
fn readable_rows(rows: &[PgRow]) -> Result<(Vec<OutboxRow>, Vec<NewParked>), sqlx::Error> {
    let (mut readable, mut parked, mut held) = (Vec::with_capacity(rows.len()), Vec::new(), HashSet::new());
    for row in rows {
        if !held.is_empty() && held.contains(&ordering_key(row)?) {
            continue;
        }
        match rows::readable(OutboxRow::from_row(row))? {
            Ok(row) => readable.push(row),
            Err(problem) => {
                let (message, attempts) = (MessageId(row.try_get(0)?), rows::narrow(row, 10).unwrap_or_default());
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

fn ordering_key(row: &PgRow) -> Result<(&str, &str, &str), sqlx::Error> {
    Ok((rows::text(row, 1)?, rows::text(row, 2)?, rows::text(row, 3)?))
}

fn columns(lanes: &[LeasedLane]) -> (Vec<i16>, Vec<i64>) {
    let mut lanes = lanes.to_vec();
    lanes.sort_unstable_by_key(|lane| lane.lane);
    lanes.iter().map(|lane| (i16::from(lane.lane), signed(lane.epoch))).unzip()
}

fn lane(row: &PgRow) -> Result<LeasedLane, sqlx::Error> {
    let lane: i16 = row.try_get(0)?;
    let lane = u8::try_from(lane).map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(LeasedLane { lane, epoch: rows::unsigned(row, 1)? })
}

impl FromRow for OutboxRow {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: MessageId(row.try_get(0)?),
            tenant: rows::tenant(row, 1)?,
            aggregate_type: row.try_get(2)?,
            aggregate_id: row.try_get(3)?,
            event_type: row.try_get(4)?,
            payload: row.try_get(5)?,
            position: rows::unsigned(row, 6)?,
            committed_at: rows::moment(row, 7)?,
            kind: rows::parsed(row, 8, MessageKind::parse)?,
            headers: rows::headers(row, 9)?,
            attempts: rows::narrow(row, 10)?,
        })
    }
}

impl FromRow for ParkedKey {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            tenant: rows::tenant(row, 0)?,
            aggregate_type: row.try_get(1)?,
            aggregate_id: row.try_get(2)?,
            message: MessageId(row.try_get(3)?),
            attempts: rows::narrow(row, 4)?,
            error: row.try_get(5)?,
            since: rows::moment(row, 6)?,
            retry_at: rows::moment_or_none(row, 7)?,
        })
    }
}
