//! A queue with two lanes: commands handed on after a commit, and commands claimed from the store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::engine::bulkhead::FairLane;
use crate::env::{Environment, timeout};

/// Of so many rounds one serves first what was claimed, so that retries and what another process left behind are not
/// starved by what is handed on.
const CLAIMED_SHARE: u64 = 4;

/// A share of fewer than this is not worth a transaction of its own while there are more: rather few workers with
/// large shares than many with small ones.
const SHARE_MIN: usize = 16;

/// How long a worker waits at most for its share to come together.
const GATHERING_MAX: Duration = Duration::from_millis(2);

/// Commands that wait for a worker of this process, in two lanes: what was handed on after a commit, and what was
/// claimed from the store. In each lane the flows take turns: the definitions, and in the queue of calls what the engine does
/// itself. The places of the runtime bound it.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    lanes: Mutex<Lanes<T>>,
    filled: Arc<Notify>,
}

#[derive(Debug)]
struct Lanes<T> {
    handed_on: FairLane<T>,
    claimed: FairLane<T>,
    rounds: u64,
    /// How many were taken as a share, and are not done.
    under_way: usize,
    /// Workers that wait for a share, and how large one is with so many.
    gathering: usize,
    workers: usize,
    closed: bool,
}

impl<T> Lanes<T> {
    fn waiting(&self) -> usize {
        self.handed_on.len() + self.claimed.len()
    }

    fn share(&self, workers: usize) -> usize {
        share_of(self.waiting() + self.under_way, workers)
    }
}

/// How the commands are shared out.
#[derive(Clone, Copy)]
struct Sharing {
    workers: usize,
    /// Whether a worker waits for its share.
    is_patient: bool,
}

/// How many of all commands one worker takes. A half is for another one, so that neither the program nor the store waits
/// for the other.
fn share_of(all: usize, workers: usize) -> usize {
    all.div_ceil(workers).max(SHARE_MIN.min(all.div_ceil(2)))
}

/// A worker that waits for its share.
struct Gathering<'a, T> {
    queue: &'a Queue<T>,
}

impl<T> Drop for Gathering<'_, T> {
    fn drop(&mut self) {
        self.queue.lock().gathering -= 1;
    }
}

/// What a worker finds.
enum Found<T> {
    Taken(Vec<T>),
    /// There are commands, but fewer than its share.
    TooFew,
    Nothing,
    Closed,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        let lanes = Lanes {
            handed_on: FairLane::new(),
            claimed: FairLane::new(),
            rounds: 0,
            under_way: 0,
            gathering: 0,
            workers: 1,
            closed: false,
        };
        Self { lanes: Mutex::new(lanes), filled: Arc::new(Notify::new()) }
    }

    /// What wakes those who wait for a command: a new one, or a line that another one needs.
    pub(crate) fn filled(&self) -> Arc<Notify> {
        Arc::clone(&self.filled)
    }

    /// Adds a command that was handed on, to the flow of that number. A closed queue gives it back.
    pub(crate) fn push(&self, flow: u32, command: T) -> Option<T> {
        self.push_to(flow, command, |lanes| &mut lanes.handed_on)
    }

    /// Adds a command that was claimed, to the flow of that number. A closed queue gives it back.
    pub(crate) fn push_claimed(&self, flow: u32, command: T) -> Option<T> {
        self.push_to(flow, command, |lanes| &mut lanes.claimed)
    }

    /// Whether a command of that flow waits.
    pub(crate) fn has_waiting(&self, flow: u32) -> bool {
        let lanes = self.lock();
        lanes.handed_on.has_of(flow) || lanes.claimed.has_of(flow)
    }

    /// Shows each command that waits.
    pub(crate) fn look(&self, mut see: impl FnMut(&T)) {
        let lanes = self.lock();
        lanes.handed_on.iter().chain(lanes.claimed.iter()).for_each(&mut see);
    }

    /// Changes commands that wait, and drops those that are not to be kept; answers how many these were.
    pub(crate) fn retain(&self, mut keep: impl FnMut(&mut T) -> bool) -> usize {
        let mut lanes = self.lock();
        let before = lanes.waiting();
        lanes.handed_on.retain_mut(&mut keep);
        lanes.claimed.retain_mut(&mut keep);
        before - lanes.waiting()
    }

    /// Takes those that `takes` says so of, beginning with what was claimed last.
    pub(crate) fn take_last(&self, mut takes: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut lanes = self.lock();
        let mut last_ones = lanes.claimed.take_last(&mut takes);
        last_ones.extend(lanes.handed_on.take_last(&mut takes));
        last_ones
    }

    /// The next commands: those that `take` picks, of the lane whose turn it is and then of the other. Nothing when
    /// the queue is closed.
    ///
    /// # Cancel safety
    /// When dropped, nothing was taken.
    pub(crate) async fn next(&self, mut take: impl FnMut(&mut FairLane<T>, &mut Vec<T>)) -> Option<Vec<T>> {
        loop {
            let filled = self.filled.notified();
            match self.find(None, |lane, taken, _| take(lane, taken)) {
                Found::Taken(commands) => return Some(commands),
                Found::Closed => return None,
                Found::TooFew | Found::Nothing => filled.await,
            }
        }
    }

    /// The same for one of several workers that are the quicker the more each of them has at once. While others are at
    /// work it waits a moment for its share of all commands, so that it does not take each one as it comes. `take` is told
    /// how many its share is, and what it took is to be reported as [`done`](Self::done).
    ///
    /// # Cancel safety
    /// When dropped, nothing was taken.
    pub(crate) async fn next_share(
        &self,
        env: &dyn Environment,
        workers: usize,
        mut take: impl FnMut(&mut FairLane<T>, &mut Vec<T>, usize),
    ) -> Option<Vec<T>> {
        let mut is_patient = true;
        loop {
            let filled = self.filled.notified();
            match self.find(Some(Sharing { workers, is_patient }), &mut take) {
                Found::Taken(commands) => return Some(commands),
                Found::Closed => return None,
                Found::TooFew => {
                    let gathering = Gathering { queue: self };
                    is_patient = timeout(env, GATHERING_MAX, filled).await.is_ok();
                    drop(gathering);
                }
                Found::Nothing => {
                    is_patient = true;
                    filled.await;
                }
            }
        }
    }

    /// What was taken as a share has come to its end.
    pub(crate) fn done(&self, commands: usize) {
        let mut lanes = self.lock();
        lanes.under_way -= commands;
        let is_empty = lanes.waiting() == 0;
        drop(lanes);
        // The share of the tasks that wait for theirs has become smaller.
        if !is_empty {
            self.filled.notify_one();
        }
    }

    fn find(&self, sharing: Option<Sharing>, mut take: impl FnMut(&mut FairLane<T>, &mut Vec<T>, usize)) -> Found<T> {
        let mut lanes = self.lock();
        let waiting = lanes.waiting();
        if lanes.closed {
            return Found::Closed;
        }
        if waiting == 0 {
            return Found::Nothing;
        }
        let share = sharing.map_or(waiting, |sharing| lanes.share(sharing.workers));
        if let Some(sharing) = sharing.filter(|sharing| sharing.is_patient && waiting < share) {
            lanes.gathering += 1;
            lanes.workers = sharing.workers;
            return Found::TooFew;
        }
        lanes.rounds += 1;
        let mut taken = Vec::new();
        let Lanes { handed_on, claimed, rounds, under_way, .. } = &mut *lanes;
        let (first, second) = if *rounds % CLAIMED_SHARE == 0 { (claimed, handed_on) } else { (handed_on, claimed) };
        take(first, &mut taken, share);
        take(second, &mut taken, share);
        if sharing.is_some() {
            *under_way += taken.len();
        }
        let more = !first.is_empty() || !second.is_empty();
        drop(lanes);
        // Items that no worker may take now are taken when a running one is done.
        if more && !taken.is_empty() {
            self.filled.notify_one();
        }
        if taken.is_empty() { Found::Nothing } else { Found::Taken(taken) }
    }

    /// Closes the queue and hands out what waited in it.
    pub(crate) fn close(&self) -> Vec<T> {
        let mut lanes = self.lock();
        lanes.closed = true;
        let mut left: Vec<T> = lanes.handed_on.drain().collect();
        left.extend(lanes.claimed.drain());
        drop(lanes);
        self.filled.notify_waiters();
        left
    }

    fn push_to(&self, flow: u32, command: T, lane: impl FnOnce(&mut Lanes<T>) -> &mut FairLane<T>) -> Option<T> {
        let mut lanes = self.lock();
        if lanes.closed {
            return Some(command);
        }
        lane(&mut lanes).push(flow, command);
        // A worker that waits for its share is woken when the share is there, and takes what there is when it has
        // waited long enough.
        let is_share = lanes.gathering == 0 || lanes.waiting() >= lanes.share(lanes.workers);
        drop(lanes);
        if is_share {
            self.filled.notify_one();
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Lanes<T>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::TokioEnvironment;

    const WORKERS: usize = 2;

    fn up_to(lane: &mut FairLane<u32>, taken: &mut Vec<u32>, share: usize) {
        while taken.len() < share
            && let Some(one) = lane.remove(0)
        {
            taken.push(one);
        }
    }

    async fn share(queue: &Queue<u32>) -> Vec<u32> {
        let env = TokioEnvironment::current().expect("a test has a runtime");
        queue.next_share(&env, WORKERS, up_to).await.unwrap_or_default()
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_takes_its_share_and_leaves_the_rest() {
        let queue = Queue::new();
        (0..4).for_each(|one| assert!(queue.push(0, one).is_none()));
        assert_eq!(share(&queue).await, [0, 1]);
        assert_eq!(share(&queue).await, [2, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn alone_nobody_waits_and_beside_others_for_a_moment_only() {
        let queue = Queue::new();
        assert!(queue.push(0, 0).is_none());
        let began = tokio::time::Instant::now();
        assert_eq!(share(&queue).await, [0]);
        assert_eq!(began.elapsed(), Duration::ZERO, "nobody else is at work");

        (1..5).for_each(|one| assert!(queue.push(0, one).is_none()));
        assert_eq!(share(&queue).await, [1, 2, 3], "half of all five, rounded up");
        assert_eq!(share(&queue).await, [4], "less than its share");
        assert!(began.elapsed() >= GATHERING_MAX, "it waited for the others to come");
    }

    #[test]
    fn few_workers_have_large_shares() {
        let share = |all| share_of(all, 8);
        assert_eq!([1, 2, 16, 31, 64, 128, 256].map(share), [1, 1, 8, 16, 16, 16, 32]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_done_makes_the_share_smaller() {
        let queue = Queue::new();
        (0..5).for_each(|one| assert!(queue.push(0, one).is_none()));
        assert_eq!(share(&queue).await.len(), 3);
        let began = tokio::time::Instant::now();
        queue.done(3);
        assert_eq!(share(&queue).await, [3], "half of the two that are left");
        assert_eq!(share(&queue).await, [4]);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
