use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::activity::{Activity, ActivityGuard, Pause};

/// A boxed future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Time, tasks and randomness.
///
/// The methods with a default are for virtual time, which stands still while something goes on and jumps over what only
/// looks whether there is something to do. An environment with real time leaves them as they are.
///
/// # Contract
/// - `ENV-TIME` `now` never goes backwards.
/// - `ENV-SLEEP` `sleep(d)` is ready when `now` has grown by at least `d`, and costs nothing when dropped.
/// - `ENV-SPAWN` a spawned task is polled until it ends or its process does; a panic in it ends that task only.
/// - `ENV-PAUSE` a `pause` that is answered with true is as long as its interval. One that is cut short is answered with false,
///   and the next one is no shorter than it was.
pub trait Environment: Send + Sync + 'static {
    /// Time since an arbitrary moment in the past. It measures what is left of leases and time limits; it is never
    /// written down, since every process has its own.
    fn now(&self) -> Duration;

    /// Waits for `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Runs a task on its own.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Sixty-four random bits, for jitter and message ids.
    fn random(&self) -> u64;

    /// Waits before a task looks again whether something has changed, such as a poll of the store; answers whether the
    /// interval has passed. Virtual time cuts a pause short to have the task look once, and then jumps to the next moment
    /// at which something is due.
    #[doc(hidden)]
    fn pause(&self, pause: Pause) -> BoxFuture<'static, bool> {
        let sleep = self.sleep(pause.interval);
        Box::pin(async move {
            sleep.await;
            true
        })
    }

    /// For how long a member of a store says that it is alive, where the settings say `ttl`. Virtual time adds the jump
    /// that comes next: no heartbeat can be sent during a jump.
    #[doc(hidden)]
    fn member_ttl(&self, ttl: Duration) -> Duration {
        ttl
    }

    /// An activity begins, and goes on until the guard is dropped. Virtual time stands still during a call, a transaction
    /// and a call of the store, and may pass by itself while a caller waits. Other environments return `None`.
    #[doc(hidden)]
    fn enter(&self, activity: Activity) -> Option<Box<dyn ActivityGuard>> {
        let _ = activity;
        None
    }
}
