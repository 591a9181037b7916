use std::sync::Arc;
use std::time::Duration;

use saga_core::env::{BoxFuture, Environment, TokioEnvironment};
use tokio::sync::watch;

/// An environment whose timers can be stopped, as those of a process are that does not get the processor: its leases
/// and its heartbeats lapse while its calls are still on their way. A clone is the same environment.
#[derive(Clone)]
pub struct StoppableEnvironment {
    tokio: Arc<TokioEnvironment>,
    stopped: Arc<watch::Sender<bool>>,
}

impl StoppableEnvironment {
    /// One that runs.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new() -> Self {
        let tokio = TokioEnvironment::current().expect("tests run inside tokio");
        Self { tokio: Arc::new(tokio), stopped: Arc::new(watch::Sender::new(false)) }
    }

    /// No timer fires from now on.
    pub fn stop(&self) {
        self.stopped.send_replace(true);
    }

    /// All that is due fires.
    pub fn go_on(&self) {
        self.stopped.send_replace(false);
    }
}

impl Default for StoppableEnvironment {
    fn default() -> Self {
        Self::new()
    }
}

impl Environment for StoppableEnvironment {
    fn now(&self) -> Duration {
        self.tokio.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (sleep, mut stopped) = (self.tokio.sleep(duration), self.stopped.subscribe());
        Box::pin(async move {
            sleep.await;
            // The sender lives as long as the environment; without it nobody can stop anything.
            drop(stopped.wait_for(|stopped| !stopped).await);
        })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.tokio.spawn(task);
    }

    fn random(&self) -> u64 {
        self.tokio.random()
    }
}
