//! The ids that this process may still hand out.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The ids that this process may still hand out.
#[derive(Debug, Default)]
pub(crate) struct IdCounter(Mutex<Range<i64>>);

impl IdCounter {
    /// The next `count` ids. `None` when too few are left.
    pub(crate) fn take(&self, count: u32) -> Option<Range<i64>> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = left.start.checked_add(i64::from(count)).filter(|end| *end <= left.end)?;
        let taken = left.start..end;
        left.start = end;
        Some(taken)
    }

    /// Adds a block that was fetched. If it does not follow the rest, the rest is lost, which is allowed.
    pub(crate) fn add(&self, fetched: Range<i64>) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if left.end == fetched.start {
            left.end = fetched.end;
        } else {
            *left = fetched;
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
        // A caller needs more than is left, and another one takes some of it before the next block is there.
        assert_eq!((ids.take(3), ids.take(1)), (None, Some(9..10)));
        ids.add(10..13);
        assert_eq!((ids.take(3), ids.take(1)), (Some(10..13), None));
    }
}
