//! Ids: a counter in memory over blocks that are reserved in the file, so that no id is given twice.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

/// How many ids one write to the file reserves. Unused ids are lost when the process ends.
const BLOCK: i64 = 1 << 24;

/// The ids that this process may still hand out.
#[derive(Debug)]
pub(crate) struct IdCounter(Mutex<Range<i64>>);

impl IdCounter {
    pub(crate) fn new(block: Range<i64>) -> Self {
        Self(Mutex::new(block))
    }

    /// The next `count` ids. `None` when the block is used up.
    pub(crate) fn take(&self, count: u32) -> Option<Range<i64>> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = left.start.checked_add(i64::from(count)).filter(|end| *end <= left.end)?;
        let taken = left.start..end;
        left.start = end;
        Some(taken)
    }

    /// Whether another block should be fetched before this one is used up.
    pub(crate) fn is_low(&self) -> bool {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.end - left.start < BLOCK / 2
    }

    /// Adds a fetched block. Blocks are consecutive, since one process fetches them all.
    pub(crate) fn add(&self, block: &Range<i64>) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if block.start > left.end {
            left.start = block.start;
        }
        left.end = left.end.max(block.end);
    }
}

/// Reserves a block in the file. It is valid when the transaction commits.
pub(crate) fn fetch(conn: &Connection) -> rusqlite::Result<Range<i64>> {
    let end: i64 = conn
        .prepare_cached("UPDATE saga_ids SET handed_out = handed_out + ?1 RETURNING handed_out")?
        .query_row([BLOCK], |row| row.get(0))?;
    // `handed_out` is the highest id that was handed out, so this block begins one above the end of the last block.
    Ok(end - BLOCK + 1..end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_handed_out_once_and_another_follows() {
        let ids = IdCounter::new(1..4);
        assert_eq!(ids.take(2), Some(1..3));
        assert_eq!(ids.take(2), None);
        assert!(ids.is_low());
        ids.add(&(4..8));
        assert_eq!(ids.take(3), Some(3..6));
        // A block between them was lost, because its caller was gone.
        ids.add(&(20..30));
        assert_eq!(ids.take(2), Some(20..22));
    }
}
