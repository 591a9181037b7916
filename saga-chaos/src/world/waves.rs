use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::orders::OrderBook;

/// Which orders are given to whom: every third file to two replicas, the others to one.
#[derive(Debug)]
pub(crate) struct Waves {
    book: OrderBook,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Those that another replica is to start as well.
    again: VecDeque<u64>,
    is_closed: bool,
    under_way: usize,
}

/// The orders of one file.
#[derive(Debug, Clone)]
pub(crate) struct Wave {
    pub(crate) number: u64,
    pub(crate) file: PathBuf,
}

impl Waves {
    pub(crate) fn of(book: OrderBook) -> Self {
        Self { book, state: Mutex::default() }
    }

    /// The next orders for somebody who has none; nothing when no more are started.
    pub(crate) fn take(&self) -> anyhow::Result<Option<Wave>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return Ok(None);
        }
        let number = state.again.pop_front().unwrap_or_else(|| {
            let number = state.next;
            state.next += 1;
            if number.is_multiple_of(3) {
                state.again.push_back(number);
            }
            number
        });
        let file = self.book.write_wave(number)?;
        state.under_way += 1;
        Ok(Some(Wave { number, file }))
    }

    /// Somebody's orders have ended.
    pub(crate) fn ended(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).under_way -= 1;
    }

    /// From now on nothing is started.
    pub(crate) fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
    }

    /// How many files are being worked on.
    pub(crate) fn under_way(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).under_way
    }

    /// The keys of all orders that were given to somebody, and of which wave each is.
    pub(crate) fn keys(&self) -> Vec<(u64, String)> {
        let given = self.state.lock().unwrap_or_else(PoisonError::into_inner).next;
        (0..given).flat_map(|wave| self.book.keys(wave).into_iter().map(move |key| (wave, key))).collect()
    }
}
