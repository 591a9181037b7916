//! Hints between the handles of a store.

use crate::memory::MemoryStore;
use crate::store::{Hint, Hints, Listener};

impl Hints for MemoryStore {
    fn hint(&self, hint: Hint) {
        if let Some(hints) = &self.hints {
            hints.notify(hint);
        }
    }

    fn listen(&self) -> Option<Box<dyn Listener>> {
        Some(self.hints.as_ref()?.listen())
    }
}
