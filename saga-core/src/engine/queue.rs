use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Of so many rounds one serves first what was claimed, so that retries and what another process left behind are not
/// starved by what is handed on.
const CLAIMED_SHARE: u64 = 4;

/// Commands that wait for a worker of this process, in two lanes: what was handed on after a commit, and what was
/// claimed from the store. The places of the runtime bound it.
#[derive(Debug)]
pub(super) struct Queue<T> {
    lanes: Mutex<Lanes<T>>,
    filled: Notify,
}

#[derive(Debug)]
struct Lanes<T> {
    handed_on: VecDeque<T>,
    claimed: VecDeque<T>,
    rounds: u64,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let lanes = Lanes { handed_on: VecDeque::new(), claimed: VecDeque::new(), rounds: 0, closed: false };
        Self { lanes: Mutex::new(lanes), filled: Notify::new() }
    }

    /// Adds a command that was handed on. A closed queue gives it back.
    pub(super) fn hand_on(&self, command: T) -> Option<T> {
        self.push(command, |lanes| &mut lanes.handed_on)
    }

    /// Adds a command that was claimed. A closed queue gives it back.
    pub(super) fn push_claimed(&self, command: T) -> Option<T> {
        self.push(command, |lanes| &mut lanes.claimed)
    }

    /// The next commands: those that `take` picks, of the lane whose turn it is and then of the other. Nothing when
    /// the queue is closed.
    ///
    /// # Cancel safety
    /// When dropped, nothing was taken.
    pub(super) async fn next(&self, mut take: impl FnMut(&mut VecDeque<T>, &mut Vec<T>)) -> Option<Vec<T>> {
        loop {
            let filled = self.filled.notified();
            {
                let mut lanes = self.lock();
                if lanes.closed {
                    return None;
                }
                lanes.rounds += 1;
                let mut taken = Vec::new();
                let Lanes { handed_on, claimed, rounds, .. } = &mut *lanes;
                let (first, second) =
                    if *rounds % CLAIMED_SHARE == 0 { (claimed, handed_on) } else { (handed_on, claimed) };
                take(first, &mut taken);
                take(second, &mut taken);
                let more = !first.is_empty() || !second.is_empty();
                drop(lanes);
                if !taken.is_empty() {
                    if more {
                        self.filled.notify_one();
                    }
                    return Some(taken);
                }
            }
            filled.await;
        }
    }

    /// Closes the queue and hands out what waited in it.
    pub(super) fn close(&self) -> Vec<T> {
        let mut lanes = self.lock();
        lanes.closed = true;
        let mut left: Vec<T> = lanes.handed_on.drain(..).collect();
        left.extend(lanes.claimed.drain(..));
        drop(lanes);
        self.filled.notify_waiters();
        left
    }

    fn push(&self, command: T, lane: impl FnOnce(&mut Lanes<T>) -> &mut VecDeque<T>) -> Option<T> {
        let mut lanes = self.lock();
        if lanes.closed {
            return Some(command);
        }
        lane(&mut lanes).push_back(command);
        drop(lanes);
        self.filled.notify_one();
        None
    }

    fn lock(&self) -> MutexGuard<'_, Lanes<T>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
