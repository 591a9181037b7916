//! A queue from the callers to a thread.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The items that wait for a thread. A closed queue takes no new items; waiting items are still served.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    sleepers: usize,
    is_closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        let state = State { waiting: VecDeque::new(), sleepers: 0, is_closed: false };
        Self { state: Mutex::new(state), filled: Condvar::new() }
    }

    /// Adds an item; answers false, and drops the item, when the queue is closed.
    pub(crate) fn push(&self, item: T) -> bool {
        let mut state = self.lock();
        if state.is_closed {
            return false;
        }
        state.waiting.push_back(item);
        let wakes = state.sleepers > 0;
        drop(state);
        if wakes {
            self.filled.notify_one();
        }
        true
    }

    /// Moves at most `limit` waiting items to the end of `items`, without blocking; answers how many.
    pub(crate) fn take_waiting(&self, items: &mut Vec<T>, limit: usize) -> usize {
        let mut state = self.lock();
        let count = limit.min(state.waiting.len());
        items.extend(state.waiting.drain(..count));
        count
    }

    /// Waits for an item. `None` when the queue is closed and empty.
    pub(crate) fn wait(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.waiting.pop_front() {
                return Some(item);
            }
            if state.is_closed {
                return None;
            }
            state.sleepers += 1;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.sleepers -= 1;
        }
    }

    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_served_after_the_close_and_nothing_else() {
        let queue = Queue::new();
        assert!((1..=4).all(|item| queue.push(item)));
        queue.close();
        assert!(!queue.push(5));
        let mut items = Vec::new();
        assert_eq!(queue.take_waiting(&mut items, 2), 2);
        assert_eq!(items, [1, 2]);
        assert_eq!([queue.wait(), queue.wait(), queue.wait()], [Some(3), Some(4), None]);
    }
}
