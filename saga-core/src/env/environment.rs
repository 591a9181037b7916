use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A boxed future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Time, tasks and randomness.
///
/// # Contract
/// - `ENV-TIME` `now` never goes backwards.
/// - `ENV-SLEEP` `sleep(d)` is ready when `now` has grown by at least `d`, and costs nothing when dropped.
/// - `ENV-SPAWN` a spawned task is polled until it ends or its process does; a panic in it ends that task only.
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
}
