//! Serializes the replies to one saga in this process. Concurrent decisions would conflict, and read the saga again: the items of a
//! list are often answered at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;

use crate::key::{Key, Tenant};

/// One lock per saga. It only saves conflicts: another process may decide at the same time.
#[derive(Debug, Default)]
pub(crate) struct KeyedMutex(Mutex<Locks>);

/// One mutex for each saga that a task of this process decides about.
type Locks = HashMap<(Tenant, Key), Arc<tokio::sync::Mutex<()>>>;

/// Holds the lock of a saga until it is dropped.
pub(crate) struct KeyedMutexGuard<'a> {
    mutex: &'a KeyedMutex,
    name: (Tenant, Key),
    own: Option<OwnedMutexGuard<()>>,
}

impl KeyedMutex {
    /// Waits until no other task of this process decides about the saga.
    ///
    /// # Cancel safety
    /// When dropped, the lock is not taken.
    pub(crate) async fn lock(&self, tenant: &Tenant, key: &Key) -> KeyedMutexGuard<'_> {
        let name = (tenant.clone(), key.clone());
        let lock = Arc::clone(self.locks().entry(name.clone()).or_default());
        // The guard removes the entry even if this call is dropped while it waits.
        let mut guard = KeyedMutexGuard { mutex: self, name, own: None };
        guard.own = Some(lock.lock_owned().await);
        guard
    }

    fn locks(&self) -> MutexGuard<'_, Locks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for KeyedMutexGuard<'_> {
    fn drop(&mut self) {
        self.own = None;
        let mut locks = self.mutex.locks();
        // Every waiting task holds the mutex as well, and tasks get it only from this map.
        if locks.get(&self.name).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_has_its_turn_behind_the_other_and_nothing_is_left() {
        let (mutex, tenant, key) = (KeyedMutex::default(), Tenant::default(), Key::new("o-1").unwrap());
        let first = mutex.lock(&tenant, &key).await;
        let other = mutex.lock(&tenant, &Key::new("o-2").unwrap()).await;
        let mut second = Box::pin(mutex.lock(&tenant, &key));
        let mut third = Box::pin(mutex.lock(&tenant, &key));
        assert!(now(&mut second).is_none());
        assert!(now(&mut third).is_none());
        drop((first, second));
        let third = now(&mut third);
        assert!(third.is_some(), "a waiter that was dropped keeps no place in the queue");
        drop((third, other));
        assert!(mutex.locks().is_empty());
    }

    fn now<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        }
    }
}
