//! The keys of sagas that a step transaction of this process is about to start.
//!
//! Until it commits, the database makes everybody wait who wants the same key. What this process knows by itself, it need
//! not ask there.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::key::{Key, Tenant};

#[derive(Debug, Default)]
pub(crate) struct PendingStarts {
    keys: Mutex<HashSet<(Tenant, Key)>>,
    ended: Notify,
}

/// A key that is about to be started. It is not any more when this is dropped.
#[derive(Debug)]
pub(crate) struct PendingStart {
    keys: Arc<PendingStarts>,
    key: (Tenant, Key),
}

impl PendingStarts {
    /// Notes a key; nothing if it is noted already.
    pub(crate) fn enter(self: &Arc<Self>, tenant: &Tenant, key: &Key) -> Option<PendingStart> {
        let key = (tenant.clone(), key.clone());
        self.lock().insert(key.clone()).then(|| PendingStart { keys: Arc::clone(self), key })
    }

    pub(crate) fn contains(&self, tenant: &Tenant, key: &Key) -> bool {
        let keys = self.lock();
        !keys.is_empty() && keys.contains(&(tenant.clone(), key.clone()))
    }

    /// Waits until no transaction is about to start this key.
    ///
    /// # Cancel safety
    /// Nothing changes when it is dropped.
    pub(crate) async fn wait(&self, tenant: &Tenant, key: &Key) {
        loop {
            let ended = self.ended.notified();
            if !self.contains(tenant, key) {
                return;
            }
            ended.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<(Tenant, Key)>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PendingStart {
    fn drop(&mut self) {
        self.keys.lock().remove(&self.key);
        self.keys.ended.notify_waiters();
    }
}
