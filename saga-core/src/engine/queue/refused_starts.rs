//! Which semantic locks the transactions that start sagas do not get.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// After so many refusals in a row, most sagas that begin with the lock ask for it after they are started.
const REFUSALS_MAX: u32 = 4;

/// One of this many still takes it in the transaction that starts it, if it is free by then.
const TRIED_EVERY: u32 = 16;

/// Semantic locks that were refused to transactions which started sagas, by the name of the step that takes the lock: how many sagas
/// started since the last one that got it. A lock that the last start got has no entry.
#[derive(Debug, Default)]
pub(crate) struct RefusedStarts(Mutex<Vec<(&'static str, u32)>>);

impl RefusedStarts {
    /// A transaction that started a saga got the lock, or was refused it.
    pub(crate) fn started(&self, lock: &'static str, was_refused: bool) {
        let mut refused = self.lock();
        let place = refused.iter().position(|(name, _)| *name == lock);
        match (place, was_refused) {
            (Some(place), true) => refused[place].1 = next(refused[place].1),
            (Some(place), false) => _ = refused.swap_remove(place),
            (None, true) => refused.push((lock, 1)),
            (None, false) => {}
        }
    }

    /// Whether the next saga that begins with the lock should ask for it after it is started.
    pub(crate) fn asks_later(&self, lock: &'static str) -> bool {
        let mut refused = self.lock();
        let Some((_, count)) = refused.iter_mut().find(|(name, _)| *name == lock) else { return false };
        if *count < REFUSALS_MAX {
            return false;
        }
        *count = next(*count);
        !count.is_multiple_of(TRIED_EVERY)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(&'static str, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Behind the highest number the count goes on where most sagas ask later.
fn next(count: u32) -> u32 {
    count.checked_add(1).unwrap_or(REFUSALS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_often_refused_is_asked_for_after_most_starts() {
        let starts = RefusedStarts::default();
        assert!(!starts.asks_later("account"), "nothing is known");
        (1..REFUSALS_MAX).for_each(|_| starts.started("account", true));
        assert!(!starts.asks_later("account"), "it may have been by chance");
        starts.started("account", true);
        let tried = (0..1_600).filter(|_| !starts.asks_later("account")).count();
        assert_eq!(tried, 100);
        starts.started("account", false);
        assert!(!starts.asks_later("account") && !starts.asks_later("other"), "it is free again");
    }
}
