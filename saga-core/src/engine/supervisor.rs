//! Watching the tasks of a runtime: a lane that panics is started again, and what panicked is shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::asking::backoff_after;
use super::shared::EngineContext;
use crate::env::BoxFuture;
use crate::log;
use crate::store::Store;
use crate::unwind::{caught, caught_while};

/// A lane that ran for so long since its last panic begins again with the shortest pause.
const SOUND_AFTER: Duration = Duration::from_mins(1);

/// What panicked of a runtime, apart from the steps, whose panics are failures of their attempts: a bug of the runtime, the
/// store or the transport. What was under way is taken up again, at the latest when its lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Panicked {
    /// The lane, a task that serves all sagas, or the name of what was done for one saga or message.
    pub lane: &'static str,
    /// How often it panicked since the runtime began.
    pub count: u64,
    /// What the last panic said.
    pub last: String,
    /// How long ago that was.
    pub since: Duration,
    /// Whether it is down: it is started again after a pause of at most two seconds.
    pub is_down: bool,
}

/// Remembers what panicked.
#[derive(Debug, Default)]
pub(super) struct Supervisor {
    known: Mutex<BTreeMap<&'static str, Known>>,
}

#[derive(Debug, Default)]
struct Known {
    count: u64,
    last: String,
    at: Duration,
    is_down: bool,
}

impl Supervisor {
    fn panicked(&self, lane: &'static str, now: Duration, panic: &str, is_down: bool) {
        let mut all = self.lock();
        let known = all.entry(lane).or_default();
        known.count += 1;
        (known.last, known.at, known.is_down) = (panic.to_owned(), now, is_down);
    }

    fn is_up(&self, lane: &'static str) {
        if let Some(known) = self.lock().get_mut(lane) {
            known.is_down = false;
        }
    }

    /// What panicked, by name.
    pub(super) fn read(&self, now: Duration) -> Vec<Panicked> {
        let panicked = |(&lane, known): (&&'static str, &Known)| Panicked {
            lane,
            count: known.count,
            last: known.last.clone(),
            since: now.saturating_sub(known.at),
            is_down: known.is_down,
        };
        self.lock().iter().map(panicked).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store> EngineContext<S> {
    /// Runs a lane until it ends by itself or the runtime stops. When it panics it is started again.
    pub(super) fn run_lane<F>(self: &Arc<Self>, lane: &'static str, serve: impl Fn(Arc<Self>) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let shared = Arc::clone(self);
        self.env.spawn(Box::pin(async move {
            let mut failures = 0;
            loop {
                let began = shared.time();
                // It is large: on the heap it is not moved again, neither into the task nor when that begins.
                let serving: BoxFuture<'static, ()> = Box::pin(serve(Arc::clone(&shared)));
                let Some(Err(panic)) = shared.until_stopped(caught_while(serving)).await else { return };
                let now = shared.time();
                failures = if now.saturating_sub(began) < SOUND_AFTER { failures + 1 } else { 0 };
                shared.supervisor.panicked(lane, now, &panic, true);
                log::error!(lane, panic, "a lane of the runtime panicked; it is started again");
                let pause = shared.until_stopped(shared.pause(backoff_after(failures)));
                if pause.await.is_none() {
                    return;
                }
                shared.supervisor.is_up(lane);
            }
        }));
    }

    /// Runs a task on its own, until the runtime stops.
    pub(super) fn spawn(self: &Arc<Self>, doing: &'static str, task: BoxFuture<'static, ()>) {
        let shared = Arc::clone(self);
        self.env.spawn(Box::pin(async move {
            if let Some(Err(panic)) = shared.until_stopped(caught_while(task)).await {
                shared.has_panicked(doing, &panic);
            }
        }));
    }

    /// What was done for one saga or message panicked.
    pub(super) fn has_panicked(&self, doing: &'static str, panic: &str) {
        self.supervisor.panicked(doing, self.time(), panic, false);
        log::error!(doing, panic, "a task of the runtime panicked; what it did is taken up again");
    }

    /// Nothing when the runtime stops first.
    async fn until_stopped<T>(&self, task: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stopped.cancelled() => None,
            ended = task => Some(ended),
        }
    }

    /// The time where that cannot panic, whatever the environment does.
    fn time(&self) -> Duration {
        caught(|| self.env.now()).unwrap_or_default()
    }

    /// A pause, likewise. Without a clock the others have their turn at least.
    async fn pause(&self, duration: Duration) {
        let slept = caught_while(async { self.env.sleep(duration).await }).await;
        if slept.is_err() {
            tokio::task::yield_now().await;
        }
    }
}
