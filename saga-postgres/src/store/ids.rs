//! Ids: a counter in memory over blocks of a sequence, so that no id is given twice.

use std::ops::Range;

use async_trait::async_trait;
use saga_core::store::{Ids, StoreError, StoreErrorKind};
use sqlx::PgConnection;

use crate::connections::timeline::TIMELINE;
use crate::error::store_error;
use crate::store::store::PostgresStore;

/// How many ids one step of the sequence stands for, as in the migration.
const BLOCK: i64 = 1 << 20;
/// How many ids each timeline has. After a failover to a standby that lagged behind, the sequence repeats numbers while
/// processes still have blocks from before: each timeline has its own range.
const IDS_PER_TIMELINE: i64 = 1 << 46;

#[async_trait]
impl Ids for PostgresStore {
    async fn reserve_ids(&self, count: u32) -> Result<Range<i64>, StoreError> {
        if let Some(range) = self.shared().ids.take(count) {
            return Ok(range);
        }
        let store = self.clone();
        self.in_transaction("reserve_ids", move |conn| {
            Box::pin(async move { store.ids_on(conn, "reserve_ids", count).await })
        })
        .await
    }
}

impl PostgresStore {
    /// Ids for this caller alone. A sequence does not give them again, also after a rollback.
    pub(crate) async fn ids_on(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        count: u32,
    ) -> Result<Range<i64>, StoreError> {
        let ids = &self.shared().ids;
        let sql = self.sql(&format!("SELECT nextval('{{schema}}.ids'), {TIMELINE}"));
        // Blocks are fetched until enough of them are consecutive.
        loop {
            if let Some(range) = ids.take(count) {
                return Ok(range);
            }
            let drawn = sqlx::query_as(sql.clone()).persistent(false).fetch_one(&mut *conn).await;
            let (next, timeline): (i64, i64) = drawn.map_err(|e| store_error(operation, e))?;
            self.shared().definitions.on_timeline(timeline);
            let start = block_start(next, timeline).ok_or_else(|| {
                let detail = format!("the sequence of ids is used up: {next} on timeline {timeline}");
                StoreError::new(StoreErrorKind::Corrupt, operation, detail)
            })?;
            ids.add(start..start + BLOCK);
        }
    }
}

/// The first id of a block on this timeline. The first timeline, which most servers stay on, has the numbers of the
/// sequence itself.
fn block_start(next: i64, timeline: i64) -> Option<i64> {
    let is_in_range = (1..=IDS_PER_TIMELINE - BLOCK).contains(&next);
    let before = timeline.checked_sub(1)?.checked_mul(IDS_PER_TIMELINE)?;
    before.checked_add(next).filter(|_| is_in_range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_of_one_timeline_reaches_into_another() {
        assert_eq!(block_start(1, 1), Some(1));
        assert_eq!(block_start(1, 2), Some(IDS_PER_TIMELINE + 1));
        let last = block_start(IDS_PER_TIMELINE - BLOCK, 1).unwrap();
        assert!(last + BLOCK <= block_start(1, 2).unwrap());
        assert_eq!(block_start(IDS_PER_TIMELINE, 1), None);
        assert_eq!(block_start(1, i64::MAX), None);
    }
}
