use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::orders::OrderBook;
use crate::plan::RetentionTimes;

/// Which orders are given to whom: every third file to two replicas, the others to one.
#[derive(Debug)]
pub(crate) struct Waves {
    book: OrderBook,
    retention: Option<RetentionTimes>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// When each was given out for the first time.
    given: BTreeMap<u64, Instant>,
    /// Those that were given out when their orders were tombstones.
    tombstones: BTreeSet<u64>,
    /// Those that another replica is to start as well.
    again: VecDeque<u64>,
    /// The waves whose orders are started at once, and how many orders each has.
    rushes: BTreeMap<u64, u64>,
    /// Those of them that no replica has taken yet.
    waiting: VecDeque<u64>,
    is_closed: bool,
    under_way: usize,
}

/// The orders of one file.
#[derive(Debug, Clone)]
pub(crate) struct Wave {
    pub(crate) number: u64,
    pub(crate) file: PathBuf,
    /// How many of them are started at once, where that is not as the replicas are told.
    pub(crate) at_once: Option<u64>,
}

impl Waves {
    pub(crate) fn of(book: OrderBook, retention: Option<RetentionTimes>) -> Self {
        Self { book, retention, state: Mutex::default() }
    }

    /// The next orders for a customer without any; `None` when no more are started.
    pub(crate) fn take(&self) -> anyhow::Result<Option<Wave>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return Ok(None);
        }
        let number = self.tombstones(&mut state).or_else(|| state.again.pop_front()).unwrap_or_else(|| {
            let number = state.next;
            state.next += 1;
            if number.is_multiple_of(3) {
                state.again.push_back(number);
            }
            number
        });
        state.given.entry(number).or_insert_with(Instant::now);
        let file = self.book.write_wave(number)?;
        state.under_way += 1;
        Ok(Some(Wave { number, file, at_once: None }))
    }

    /// A wave whose orders are tombstones, and which was not given out since they are.
    fn tombstones(&self, state: &mut State) -> Option<u64> {
        let retention = self.retention?;
        let are_some = |(wave, given): &(&u64, &Instant)| {
            retention.are_tombstones(given.elapsed()) && !state.tombstones.contains(wave)
        };
        let wave = state.given.iter().find(are_some).map(|(wave, _)| *wave)?;
        state.tombstones.insert(wave);
        Some(wave)
    }

    /// Whether what has ended is purged.
    pub(crate) fn purges(&self) -> bool {
        self.retention.is_some()
    }

    /// For how long the orders of a wave that was given out may still be started, where that has an end.
    pub(crate) fn time_to_start(&self, wave: u64) -> Option<Duration> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let age = state.given.get(&wave).map(Instant::elapsed).unwrap_or_default();
        Some(self.retention?.starts_within.saturating_sub(age))
    }

    /// So many orders are to be started at once, by the replica that waits for them.
    pub(crate) fn rush(&self, orders: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let number = state.next;
        state.next += 1;
        state.rushes.insert(number, orders);
        state.waiting.push_back(number);
        state.under_way += 1;
    }

    /// The next orders that are to be started at once. If there are none, orders that have become tombstones, also when no other orders are
    /// started any more.
    pub(crate) fn take_rush(&self) -> anyhow::Result<Option<Wave>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(number) = state.waiting.pop_front() else {
            let Some(number) = self.tombstones(&mut state) else { return Ok(None) };
            state.under_way += 1;
            return Ok(Some(Wave { number, file: self.book.write_wave(number)?, at_once: None }));
        };
        state.given.entry(number).or_insert_with(Instant::now);
        let orders = state.rushes.get(&number).copied().unwrap_or_default();
        Ok(Some(Wave { number, file: self.book.write_rush(number, orders)?, at_once: Some(orders) }))
    }

    /// The orders of a customer have ended.
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

    /// The keys of all orders that were given to a customer, each with its wave.
    pub(crate) fn keys(&self) -> Vec<(u64, String)> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = |wave: &u64| match state.rushes.get(wave) {
            Some(orders) => self.book.rush_keys(*wave, *orders),
            None => self.book.keys(*wave),
        };
        (0..state.next).flat_map(|wave| keys(&wave).into_iter().map(move |key| (wave, key))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rush_is_under_way_until_it_ended_and_its_orders_are_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let waves = Waves::of(OrderBook::new(5, folder.path(), 0, 0), None);
        let plain = waves.take().expect("it can be written").expect("a wave");
        waves.rush(9);
        waves.close();
        assert_eq!((plain.number, plain.at_once, waves.under_way()), (0, None, 2));
        let rush = waves.take_rush().expect("it can be written").expect("a rush that was given before the end");
        let keys: Vec<String> =
            waves.keys().into_iter().filter(|(wave, _)| *wave == rush.number).map(|it| it.1).collect();
        assert_eq!((rush.at_once, keys.len()), (Some(9), 9));
        let written = std::fs::read_to_string(rush.file).expect("a file");
        assert!(written.lines().zip(&keys).all(|(line, key)| line.contains(key)), "{written}");
        assert!(waves.take_rush().expect("nothing to write").is_none());
        waves.ended();
        waves.ended();
        assert_eq!(waves.under_way(), 0);
    }
}
