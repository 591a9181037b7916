//! What the sweeper and readers do.

use std::time::Duration;

use saga_sql::{Json, SqlConn};

use super::overdue::Scope;
use super::perform::decide;
use super::rows::{ReservationRow, ResourceRow};
use super::statements;
use super::work::{Work, WorkError};
use crate::book::{Reservation, ReservationKey, Resource, ResourceName};
use saga_core::store::Timestamp;

/// Ends holds that are over.
pub(super) struct Expire {
    pub(super) limit: usize,
}

/// Forgets what ended long ago.
pub(super) struct Prune {
    pub(super) keep: Duration,
    pub(super) limit: usize,
}

/// Reads a reservation.
pub(super) struct Find {
    pub(super) key: ReservationKey,
}

/// Reads a resource.
pub(super) struct FindResource {
    pub(super) name: ResourceName,
}

/// Reads keys in their order.
#[cfg(feature = "redis")]
pub(super) struct KeysAfter {
    pub(super) after: String,
    pub(super) limit: usize,
}

/// Asks whether the database answers.
pub(super) struct Ping;

impl Work for Expire {
    type Answer = usize;

    const OPERATION: &'static str = "end the holds that are over";

    async fn run<C: SqlConn>(&self, conn: &mut C, clock_shift: i64) -> Result<usize, WorkError> {
        let ((), overdue) = decide(conn, Scope::default(), clock_shift, self.limit, |_, _| Ok(())).await?;
        Ok(overdue)
    }
}

impl Work for Prune {
    type Answer = usize;

    const OPERATION: &'static str = "forget old reservations";

    async fn run<C: SqlConn>(&self, conn: &mut C, clock_shift: i64) -> Result<usize, WorkError> {
        let keep = i64::try_from(self.keep.as_micros()).unwrap_or(i64::MAX / 2);
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let pruned = conn.execute(statements::of::<C>().prune, &[&clock_shift, &keep, &limit]).await?;
        Ok(usize::try_from(pruned).unwrap_or(usize::MAX))
    }
}

impl Work for Find {
    type Answer = Option<Reservation>;

    const OPERATION: &'static str = "find a reservation";

    async fn run<C: SqlConn>(&self, conn: &mut C, clock_shift: i64) -> Result<Self::Answer, WorkError> {
        let keys = Json([&self.key]);
        let row: ReservationRow =
            conn.query_one(statements::of::<C>().read_reservations, &[&keys, &clock_shift]).await?;
        let now = Timestamp(row.now);
        Ok(row.reservation().map(|reservation| reservation.seen_at(now)))
    }
}

impl Work for FindResource {
    type Answer = Option<Resource>;

    const OPERATION: &'static str = "find a resource";

    async fn run<C: SqlConn>(&self, conn: &mut C, _clock_shift: i64) -> Result<Self::Answer, WorkError> {
        let sql = "SELECT name, capacity, confirmed, held, last_token, is_unique FROM reservation_resources
                   WHERE name = $1";
        let row: Option<ResourceRow> = conn.query_opt(sql, &[&self.name.as_str()]).await?;
        Ok(row.map(Resource::from))
    }
}

#[cfg(feature = "redis")]
impl Work for KeysAfter {
    type Answer = Vec<ReservationKey>;

    const OPERATION: &'static str = "read the keys of reservations";

    async fn run<C: SqlConn>(&self, conn: &mut C, _clock_shift: i64) -> Result<Self::Answer, WorkError> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let sql = "SELECT key FROM reservations WHERE key > $1 ORDER BY key LIMIT $2";
        Ok(conn.query(sql, &[&self.after.as_str(), &limit]).await?)
    }
}

impl Work for Ping {
    type Answer = ();

    const OPERATION: &'static str = "reach the database";

    async fn run<C: SqlConn>(&self, conn: &mut C, _clock_shift: i64) -> Result<(), WorkError> {
        conn.query_one::<i64>("SELECT CAST(1 AS BIGINT)", &[]).await?;
        Ok(())
    }
}
