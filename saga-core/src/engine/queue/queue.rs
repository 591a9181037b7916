//! The queue of leased commands. It has two parts, which are served in turn: commands that follow from a commit of this process,
//! and commands claimed from the store.

use std::future::poll_fn;
use std::mem::replace;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

use super::transaction_cost::TransactionCost;
use crate::engine::bulkhead::FairQueue;
use crate::env::{Environment, timeout};

/// Every fourth round serves claimed commands first, so that commands from commits do not starve retries and recovered work.
const CLAIMED_SHARE: u64 = 4;

/// A worker takes at least this many commands if twice as many wait: few large transactions are cheaper than many small ones.
const SHARE_MIN: usize = 16;

/// How long a worker waits at most for a full share.
const GATHERING_MAX: Duration = Duration::from_millis(2);

/// Leased commands that wait for a worker of this process. In each of the two parts the flows take turns. The slots of the
/// bulkheads bound the length.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Arc<Notify>,
}

#[derive(Debug)]
struct State<T> {
    from_commits: FairQueue<T>,
    claimed: FairQueue<T>,
    rounds: u64,
    /// How many commands were taken as shares, and have not ended.
    under_way: usize,
    /// How many workers wait for a full share, and how many workers there are in all.
    gathering: usize,
    workers: usize,
    /// Of the transactions that ran the shares.
    cost: TransactionCost,
    closed: bool,
}

impl<T> State<T> {
    fn new() -> Self {
        Self {
            from_commits: FairQueue::new(),
            claimed: FairQueue::new(),
            rounds: 0,
            under_way: 0,
            gathering: 0,
            workers: 1,
            cost: TransactionCost::default(),
            closed: false,
        }
    }

    fn waiting(&self) -> usize {
        self.from_commits.len() + self.claimed.len()
    }

    fn share(&self, workers: usize) -> usize {
        let share = share_of(self.waiting() + self.under_way, workers, self.cost.worthwhile());
        // A worker that is alone waits for no more.
        if self.under_way == 0 { share.min(self.waiting()) } else { share }
    }
}

/// How a worker takes a share.
#[derive(Clone, Copy)]
struct Sharing {
    workers: usize,
    /// Whether the worker waits if fewer commands than its share are there.
    is_patient: bool,
}

/// How many of all commands one worker takes: an equal part, but at least `SHARE_MIN`, or half if there are fewer than twice as
/// many. The other half lets a second worker run handlers while the first one commits. If the handlers take little of a
/// transaction, that gains little, and the worker takes as many commands as are worth a transaction.
fn share_of(all: usize, workers: usize, worthwhile: usize) -> usize {
    all.div_ceil(workers).max(SHARE_MIN.min(all.div_ceil(2).max(worthwhile)))
}

/// Lets the tasks run that are ready. Unlike `tokio::task::yield_now`, it wakes its task at once, so that virtual time stands still.
async fn let_others_run() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Counts a worker as waiting for its share until it is dropped.
struct Gathering<'a, T> {
    queue: &'a Queue<T>,
}

impl<T> Drop for Gathering<'_, T> {
    fn drop(&mut self) {
        self.queue.lock().gathering -= 1;
    }
}

/// What a worker finds in the queue.
enum Found<T> {
    Taken(Vec<T>),
    /// Fewer commands than its share.
    TooFew,
    Nothing,
    Closed,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State::new()), filled: Arc::new(Notify::new()) }
    }

    /// Wakes the workers: notified for a new command, and for a free permit.
    pub(crate) fn filled(&self) -> Arc<Notify> {
        Arc::clone(&self.filled)
    }

    /// Adds a command that follows from a commit. A closed queue returns it.
    pub(crate) fn push(&self, flow: u32, command: T) -> Option<T> {
        self.push_to(flow, command, |state| &mut state.from_commits)
    }

    /// Adds a claimed command. A closed queue returns it.
    pub(crate) fn push_claimed(&self, flow: u32, command: T) -> Option<T> {
        self.push_to(flow, command, |state| &mut state.claimed)
    }

    /// Whether the flow has a command.
    pub(crate) fn has_waiting(&self, flow: u32) -> bool {
        let state = self.lock();
        state.from_commits.has_of(flow) || state.claimed.has_of(flow)
    }

    /// Whether no command waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting() == 0
    }

    /// Calls `visit` with each waiting command.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&T)) {
        let state = self.lock();
        state.from_commits.iter().chain(state.claimed.iter()).for_each(&mut visit);
    }

    /// Drops the waiting commands for which `keep` returns false; `keep` may change the others. Returns how many were dropped.
    pub(crate) fn retain(&self, mut keep: impl FnMut(&mut T) -> bool) -> usize {
        let mut state = self.lock();
        let before = state.waiting();
        state.from_commits.retain_mut(&mut keep);
        state.claimed.retain_mut(&mut keep);
        before - state.waiting()
    }

    /// Takes the commands for which `takes` returns true, beginning with the one that was claimed last.
    pub(crate) fn take_last(&self, mut takes: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut state = self.lock();
        let mut last_ones = state.claimed.take_last(&mut takes);
        last_ones.extend(state.from_commits.take_last(&mut takes));
        last_ones
    }

    /// The next commands: those that `take` picks from the one part, and then from the other; `None` once the queue is closed.
    ///
    /// # Cancel safety
    /// When dropped, nothing was taken.
    pub(crate) async fn next(&self, mut take: impl FnMut(&mut FairQueue<T>, &mut Vec<T>)) -> Option<Vec<T>> {
        loop {
            let filled = self.filled.notified();
            match self.find(None, |part, taken, _| take(part, taken)) {
                Found::Taken(commands) => return Some(commands),
                Found::Closed => return None,
                Found::TooFew | Found::Nothing => filled.await,
            }
        }
    }

    /// The same for workers that are faster with more commands at once: a worker waits briefly until its share of all commands is
    /// there. `take` gets the size of the share. Report the end of the commands with [`done`](Self::done).
    ///
    /// # Cancel safety
    /// When dropped, nothing was taken.
    pub(crate) async fn next_share(
        &self,
        env: &dyn Environment,
        workers: usize,
        mut take: impl FnMut(&mut FairQueue<T>, &mut Vec<T>, usize),
    ) -> Option<Vec<T>> {
        let mut is_patient = true;
        loop {
            // The callers that were answered just now start their next sagas first, so that these are in this share.
            let_others_run().await;
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

    /// Tells how long the transaction of a share took, and its handlers in it.
    pub(crate) fn committed(&self, commands: usize, took: Duration, handlers: Duration) {
        self.lock().cost.add(commands, took, handlers);
    }

    /// Commands of a share have ended.
    pub(crate) fn done(&self, commands: usize) {
        let mut state = self.lock();
        state.under_way -= commands;
        let is_empty = state.waiting() == 0;
        drop(state);
        // The share of each waiting worker has become smaller.
        if !is_empty {
            self.filled.notify_one();
        }
    }

    fn find(&self, sharing: Option<Sharing>, mut take: impl FnMut(&mut FairQueue<T>, &mut Vec<T>, usize)) -> Found<T> {
        let mut state = self.lock();
        let waiting = state.waiting();
        if state.closed {
            return Found::Closed;
        }
        if waiting == 0 {
            return Found::Nothing;
        }
        let share = sharing.map_or(waiting, |sharing| state.share(sharing.workers));
        if let Some(sharing) = sharing.filter(|sharing| sharing.is_patient && waiting < share) {
            state.gathering += 1;
            state.workers = sharing.workers;
            return Found::TooFew;
        }
        state.rounds += 1;
        let mut taken = Vec::new();
        let State { from_commits, claimed, rounds, under_way, .. } = &mut *state;
        let (first, second) =
            if *rounds % CLAIMED_SHARE == 0 { (claimed, from_commits) } else { (from_commits, claimed) };
        take(first, &mut taken, share);
        take(second, &mut taken, share);
        if sharing.is_some() {
            *under_way += taken.len();
        }
        let more = !first.is_empty() || !second.is_empty();
        drop(state);
        // Commands that no worker may take now are taken when a running one ends.
        if more && !taken.is_empty() {
            self.filled.notify_one();
        }
        if taken.is_empty() { Found::Nothing } else { Found::Taken(taken) }
    }

    /// Closes the queue and returns the commands that waited in it.
    pub(crate) fn close(&self) -> Vec<T> {
        let mut state = self.lock();
        state.closed = true;
        let mut left: Vec<T> = state.from_commits.drain().collect();
        left.extend(state.claimed.drain());
        drop(state);
        self.filled.notify_waiters();
        left
    }

    fn push_to(&self, flow: u32, command: T, part: impl FnOnce(&mut State<T>) -> &mut FairQueue<T>) -> Option<T> {
        let mut state = self.lock();
        if state.closed {
            return Some(command);
        }
        part(&mut state).push(flow, command);
        // A worker that waits for its share is woken once the share is there.
        let is_share = state.gathering == 0 || state.waiting() >= state.share(state.workers);
        drop(state);
        if is_share {
            self.filled.notify_one();
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::TokioEnvironment;

    const WORKERS: usize = 2;

    fn up_to(part: &mut FairQueue<u32>, taken: &mut Vec<u32>, share: usize) {
        while taken.len() < share
            && let Some(one) = part.remove(0)
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

    #[tokio::test]
    async fn what_callers_ask_for_that_were_answered_just_now_is_in_the_next_share() {
        let queue = Arc::new(Queue::new());
        assert!(queue.push(0, 0).is_none());
        let taking = Arc::clone(&queue);
        let worker = tokio::spawn(async move { share(&taking).await });
        for caller in 1..4 {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move { assert!(queue.push(0, caller).is_none()) });
        }
        assert_eq!(worker.await.unwrap(), [0, 1], "half of all four");
    }

    #[test]
    fn few_workers_have_large_shares() {
        let share = |all| share_of(all, 8, 0);
        assert_eq!([1, 2, 16, 31, 64, 128, 256].map(share), [1, 1, 8, 16, 16, 16, 32]);
        let share_of_quick_handlers = |all| share_of(all, 8, 12);
        assert_eq!([16, 31, 256].map(share_of_quick_handlers), [12, 16, 32]);
        assert_eq!(share_of(1, 8, 1_000), SHARE_MIN);
    }

    #[tokio::test(start_paused = true)]
    async fn quick_handlers_run_in_one_transaction_at_a_time() {
        let queue = Queue::new();
        (0..500).for_each(|_| queue.committed(4, Duration::from_micros(1_400), Duration::from_micros(400)));
        (0..4).for_each(|one| assert!(queue.push(0, one).is_none()));
        let began = tokio::time::Instant::now();
        assert_eq!(share(&queue).await, [0, 1, 2, 3], "a worker that is alone takes all");
        assert_eq!(began.elapsed(), Duration::ZERO);

        (4..6).for_each(|one| assert!(queue.push(0, one).is_none()));
        let beside = async {
            tokio::time::sleep(GATHERING_MAX / 2).await;
            queue.done(4);
        };
        let (taken, ()) = tokio::join!(share(&queue), beside);
        assert_eq!(taken, [4, 5], "it waited for the end of the other transaction");
        assert_eq!(began.elapsed(), GATHERING_MAX / 2);
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
