//! Connections between two calls. A pool hands out the one that lay idle longest, and asks each that comes back whether it
//! is still there. Here the one that was used last is used next, while its session is warm, and nothing is asked of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Error, Postgres};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// After so many calls a connection goes through the pool, which closes those that are old.
const CALLS_MAX: u32 = 4096;

/// The connections that nobody uses right now.
pub(crate) struct ConnectionCache {
    /// As many as the pool has connections, so that nobody waits in the pool for one that is kept here.
    slots: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    /// One that lay here for as long is no longer taken for granted.
    idle_max: Duration,
}

struct Idle {
    conn: PoolConnection<Postgres>,
    calls: u32,
    since: Instant,
}

/// Who may use a connection, and gives it back.
pub(crate) struct CacheSlot {
    cache: Arc<ConnectionCache>,
    calls: u32,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionCache {
    pub(crate) fn new(connections: u32, trusted: Duration) -> Self {
        let places = Arc::new(Semaphore::new(connections as usize));
        Self { slots: places, idle: Mutex::default(), idle_max: trusted }
    }

    /// Waits for a slot; with it comes the connection that was used last, if one is kept.
    pub(crate) async fn take(self: &Arc<Self>) -> Result<(CacheSlot, Option<PoolConnection<Postgres>>), Error> {
        let permit = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| Error::PoolClosed)?;
        let mut idle = self.lock();
        let last = idle.pop_if(|last| last.since.elapsed() < self.idle_max);
        // Where the last is not trusted, none is: the pool asks them.
        let distrusted = if last.is_none() { std::mem::take(&mut *idle) } else { Vec::new() };
        drop(idle);
        drop(distrusted);
        let (calls, conn) = last.map_or((0, None), |last| (last.calls, Some(last.conn)));
        Ok((CacheSlot { cache: Arc::clone(self), calls, _permit: permit }, conn))
    }

    /// Gives what is kept back to the pool.
    pub(crate) fn clear(&self) {
        let idle = std::mem::take(&mut *self.lock());
        drop(idle);
    }

    /// From now on nobody gets a connection, and nothing is kept.
    pub(crate) fn close(&self) {
        self.slots.close();
        self.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionCache {
    fn drop(&mut self) {
        // Nobody closed the store. The way back to the pool is a task, for which there may be no runtime any more.
        for idle in self.lock().drain(..) {
            drop(idle.conn.detach());
        }
    }
}

impl CacheSlot {
    /// Keeps the connection for the next call.
    pub(crate) fn put_back(self, conn: PoolConnection<Postgres>) {
        let calls = self.calls + 1;
        let mut idle = self.cache.lock();
        // Under the lock: whoever closes clears behind it, and the pool would wait for what comes later.
        if calls < CALLS_MAX && !self.cache.slots.is_closed() {
            idle.push(Idle { conn, calls, since: Instant::now() });
        }
    }
}
