//! Handing out ids: a counter in memory over blocks of a sequence, so that no id comes twice, whoever asks.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use saga_core::store::{Ids, StoreError};
use sqlx::PgConnection;

use crate::error::store_error;
use crate::store::PostgresStore;

/// How many ids one step of the sequence stands for, as the migration created it.
const BLOCK: i64 = 1 << 20;

/// The ids that this process may still hand out.
#[derive(Debug, Default)]
pub(crate) struct IdCounter(Mutex<Range<i64>>);

impl IdCounter {
    /// The next `count` ids; nothing when too few are left.
    pub(crate) fn take(&self, count: u32) -> Option<Range<i64>> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = left.start.checked_add(i64::from(count)).filter(|end| *end <= left.end)?;
        let taken = left.start..end;
        left.start = end;
        Some(taken)
    }

    /// Adds what was fetched. What cannot be joined to it is lost, which is allowed to ids.
    fn add(&self, fetched: Range<i64>) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if left.end == fetched.start {
            left.end = fetched.end;
        } else if fetched.end - fetched.start > left.end - left.start {
            *left = fetched;
        }
    }
}

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
    /// Ids that nobody else gets. A sequence gives them for good, also in a transaction that is rolled back.
    pub(crate) async fn ids_on(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        count: u32,
    ) -> Result<Range<i64>, StoreError> {
        let ids = &self.shared().ids;
        let sql = self.sql("SELECT nextval('{schema}.ids')");
        // More than one block is asked for until enough of them follow each other.
        let mut run = 0..0_i64;
        loop {
            if let Some(range) = ids.take(count) {
                return Ok(range);
            }
            let start: i64 = sqlx::query_scalar(sql.clone())
                .persistent(false)
                .fetch_one(&mut *conn)
                .await
                .map_err(|e| store_error(operation, e))?;
            run = if run.end == start { run.start..start + BLOCK } else { start..start + BLOCK };
            ids.add(run.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_handed_out_once() {
        let ids = IdCounter::default();
        assert_eq!(ids.take(1), None);
        ids.add(1..4);
        assert_eq!(ids.take(2), Some(1..3));
        assert_eq!(ids.take(2), None);
        // Another process took the block in between.
        ids.add(7..10);
        assert_eq!(ids.take(2), Some(7..9));
    }
}
