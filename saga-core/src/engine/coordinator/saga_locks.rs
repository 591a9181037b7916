//! Replies to one saga, one after the other: decided at once, all but one of them would find the saga moved, and read it
//! again. Items of a list are answered many at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;

use crate::key::{Key, Tenant};

/// Who decides about which saga. Nothing rests on it: another process may decide as well.
#[derive(Debug, Default)]
pub(crate) struct KeyedMutex(Mutex<Lines>);

/// One mutex for each saga that a task of this process decides about.
type Lines = HashMap<(Tenant, Key), Arc<tokio::sync::Mutex<()>>>;

/// The turn of one who decides about a saga. It ends when this is dropped.
pub(crate) struct KeyedMutexGuard<'a> {
    turns: &'a KeyedMutex,
    name: (Tenant, Key),
    own: Option<OwnedMutexGuard<()>>,
}

impl KeyedMutex {
    /// Waits until no other task of this process decides about the saga.
    ///
    /// # Cancel safety
    /// When dropped, the turn is the next one's.
    pub(crate) async fn lock(&self, tenant: &Tenant, key: &Key) -> KeyedMutexGuard<'_> {
        let name = (tenant.clone(), key.clone());
        let line = Arc::clone(self.lines().entry(name.clone()).or_default());
        // From here on it is let go of whatever happens.
        let mut turn = KeyedMutexGuard { turns: self, name, own: None };
        turn.own = Some(line.lock_owned().await);
        turn
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for KeyedMutexGuard<'_> {
    fn drop(&mut self) {
        self.own = None;
        let mut lines = self.turns.lines();
        // Every waiting task holds the mutex as well, and tasks get it only from this map.
        if lines.get(&self.name).is_some_and(|line| Arc::strong_count(line) == 1) {
            lines.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_has_its_turn_behind_the_other_and_nothing_is_left() {
        let (turns, tenant, key) = (KeyedMutex::default(), Tenant::default(), Key::new("o-1").unwrap());
        let first = turns.lock(&tenant, &key).await;
        let other = turns.lock(&tenant, &Key::new("o-2").unwrap()).await;
        let mut second = Box::pin(turns.lock(&tenant, &key));
        let mut third = Box::pin(turns.lock(&tenant, &key));
        assert!(now(&mut second).is_none());
        assert!(now(&mut third).is_none());
        drop((first, second));
        let third = now(&mut third);
        assert!(third.is_some(), "who was dropped while he waited has no turn");
        drop((third, other));
        assert!(turns.lines().is_empty());
    }

    fn now<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        }
    }
}
