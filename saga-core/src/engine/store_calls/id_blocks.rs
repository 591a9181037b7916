//! Hands out ids from blocks that the store reserves.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::store::{Ids, StoreError};

/// How many ids one block has at least.
const BLOCK: u32 = 4_096;

/// Ids from reserved blocks. The rest of a block is dropped when a call needs more; ids are cheap.
#[derive(Debug)]
pub(crate) struct IdBlocks {
    block: Mutex<Range<i64>>,
}

impl IdBlocks {
    pub(crate) fn new() -> Self {
        Self { block: Mutex::new(0..0) }
    }

    /// `count` consecutive ids that no other process has.
    pub(crate) async fn take(&self, ids: &dyn Ids, count: u32) -> Result<Range<i64>, StoreError> {
        if let Some(taken) = self.take_from_block(count) {
            return Ok(taken);
        }
        let fresh = ids.reserve_ids(BLOCK.max(count)).await?;
        let taken = fresh.start..fresh.start + i64::from(count);
        *self.lock() = taken.end..fresh.end;
        Ok(taken)
    }

    fn take_from_block(&self, count: u32) -> Option<Range<i64>> {
        let mut block = self.lock();
        let end = block.start + i64::from(count);
        let taken = (end <= block.end).then_some(block.start..end)?;
        block.start = end;
        Some(taken)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Range<i64>> {
        self.block.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
