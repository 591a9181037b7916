//! Spawns the tasks of a runtime, and stops them.

use std::sync::Arc;
use std::time::Duration;

use super::backoff::backoff_after;
use super::supervisor::Supervisor;
use super::tasks::{TaskGuard, Tasks};
use crate::env::{BoxFuture, Environment};
use crate::log;
use crate::step::CancelSignal;
use crate::unwind::{caught, caught_while};

/// A task that ran for this long before a panic restarts after the shortest pause.
const SOUND_AFTER: Duration = Duration::from_mins(1);

/// The tasks of a runtime, and the signals that end them.
pub(crate) struct Lifecycle {
    env: Arc<dyn Environment>,
    tasks: Tasks,
    pub(crate) supervisor: Supervisor,
    /// Set when the runtime takes no new work.
    pub(crate) stopping: CancelSignal,
    /// Set when all tasks end.
    pub(crate) stopped: CancelSignal,
}

impl Lifecycle {
    pub(crate) fn new(env: Arc<dyn Environment>) -> Self {
        let (stopping, stopped) = (CancelSignal::new(), CancelSignal::new());
        Self { env, tasks: Tasks::new(), supervisor: Supervisor::default(), stopping, stopped }
    }

    /// Counts a task, so that a shutdown waits for it until the guard is dropped.
    pub(crate) fn enter(&self) -> TaskGuard {
        self.tasks.enter()
    }

    /// Whether no counted task is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_idle()
    }

    /// Waits until no counted task is left.
    pub(crate) async fn idle(&self) {
        self.tasks.idle().await;
    }
}

impl Lifecycle {
    /// Whether it takes no new work.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Whether all tasks end.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.is_cancelled()
    }

    /// Ends every task at its next await.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
        self.stopped.cancel();
    }

    /// Runs a long-running task until it ends or the runtime stops. After a panic it is started again.
    pub(crate) fn run_task<T, F>(
        self: &Arc<Self>,
        name: &'static str,
        owner: &Arc<T>,
        serve: impl Fn(Arc<T>) -> F + Send + 'static,
    ) where
        T: Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (this, owner) = (Arc::clone(self), Arc::clone(owner));
        self.env.spawn(Box::pin(async move {
            let mut failures = 0;
            loop {
                let began = this.time();
                // Boxed, since it is large: it is not moved again.
                let serving: BoxFuture<'static, ()> = Box::pin(serve(Arc::clone(&owner)));
                let Some(Err(panic)) = this.until_stopped(caught_while(serving)).await else { return };
                let now = this.time();
                failures = if now.saturating_sub(began) < SOUND_AFTER { failures + 1 } else { 0 };
                this.supervisor.panicked(name, now, &panic, true);
                log::error!(task = name, panic, "long-running task panicked");
                let pause = this.until_stopped(this.pause(backoff_after(failures)));
                if pause.await.is_none() {
                    return;
                }
                this.supervisor.is_up(name);
            }
        }));
    }

    /// Runs a task until it ends or the runtime stops.
    pub(crate) fn spawn(self: &Arc<Self>, doing: &'static str, task: BoxFuture<'static, ()>) {
        let this = Arc::clone(self);
        self.env.spawn(Box::pin(async move {
            if let Some(Err(panic)) = this.until_stopped(caught_while(task)).await {
                this.has_panicked(doing, &panic);
            }
        }));
    }

    /// Reports a panic of what was done for one saga or message.
    pub(crate) fn has_panicked(&self, doing: &'static str, panic: &str) {
        self.supervisor.panicked(doing, self.time(), panic, false);
        log::error!(task = doing, panic, "task panicked");
    }

    /// `None` if the runtime stops first.
    async fn until_stopped<T>(&self, task: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stopped.cancelled() => None,
            ended = task => Some(ended),
        }
    }

    /// The time, even if the environment panics.
    pub(crate) fn time(&self) -> Duration {
        caught(|| self.env.now()).unwrap_or_default()
    }

    /// A pause, likewise. If the clock panics, it yields at least.
    pub(crate) async fn pause(&self, duration: Duration) {
        let slept = caught_while(async { self.env.sleep(duration).await }).await;
        if slept.is_err() {
            tokio::task::yield_now().await;
        }
    }
}
