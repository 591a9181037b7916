//! Connections between two calls. A pool hands out the connection that was idle longest, and tests each returned one.
//! This cache hands out the one that was used last, while its session is warm, without a test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Error, Postgres};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// After this many calls a connection goes through the pool, which closes old connections.
const CALLS_MAX: u32 = 4096;

/// The idle connections.
pub(crate) struct ConnectionCache {
    /// As many as the pool has connections, so that no caller waits in the pool for a connection that is cached here.
    slots: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    /// A connection that was idle longer goes through the pool, which tests it.
    idle_max: Duration,
}

struct Idle {
    conn: PoolConnection<Postgres>,
    calls: u32,
    since: Instant,
}

/// The right to use a connection, and to put it back.
pub(crate) struct CacheSlot {
    cache: Arc<ConnectionCache>,
    calls: u32,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionCache {
    pub(crate) fn new(connections: u32, idle_max: Duration) -> Self {
        let slots = Arc::new(Semaphore::new(connections as usize));
        Self { slots, idle: Mutex::default(), idle_max }
    }

    /// Waits for a slot; returns with it the connection that was used last, if one is cached.
    pub(crate) async fn take(self: &Arc<Self>) -> Result<(CacheSlot, Option<PoolConnection<Postgres>>), Error> {
        let permit = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| Error::PoolClosed)?;
        let mut idle = self.lock();
        let last = idle.pop_if(|last| last.since.elapsed() < self.idle_max);
        // If the last one was idle too long, so were all others: the pool tests them.
        let stale = if last.is_none() { std::mem::take(&mut *idle) } else { Vec::new() };
        drop(idle);
        drop(stale);
        let (calls, conn) = last.map_or((0, None), |last| (last.calls, Some(last.conn)));
        Ok((CacheSlot { cache: Arc::clone(self), calls, _permit: permit }, conn))
    }

    /// Gives the cached connections back to the pool.
    pub(crate) fn clear(&self) {
        let idle = std::mem::take(&mut *self.lock());
        drop(idle);
    }

    /// From now on no caller gets a connection, and none is cached.
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
        // The store was not closed. Giving a connection back to the pool needs a task, and the runtime may be gone.
        for idle in self.lock().drain(..) {
            drop(idle.conn.detach());
        }
    }
}

impl CacheSlot {
    /// Caches the connection for the next call.
    pub(crate) fn put_back(self, conn: PoolConnection<Postgres>) {
        let calls = self.calls + 1;
        let mut idle = self.cache.lock();
        // Under the lock: `close` clears the cache after it has closed the slots, and the pool would wait for a later
        // connection.
        if calls < CALLS_MAX && !self.cache.slots.is_closed() {
            idle.push(Idle { conn, calls, since: Instant::now() });
        }
    }
}
