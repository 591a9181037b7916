//! The numbers that stand for definitions in the tables.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use saga_core::store::{DefinitionId, StoreError};

use crate::error::misuse;

/// The committed numbers that this process has seen.
#[derive(Debug, Default)]
pub(crate) struct DefinitionNumbers {
    numbers: Mutex<HashMap<DefinitionId, i32>>,
    /// The timeline of the numbers; 0 before the first one.
    timeline: AtomicI64,
}

impl DefinitionNumbers {
    fn lock(&self) -> MutexGuard<'_, HashMap<DefinitionId, i32>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server is on this timeline. Numbers of an earlier timeline may be lost there, and given to other
    /// definitions.
    pub(crate) fn on_timeline(&self, timeline: i64) {
        let before = self.timeline.swap(timeline, Ordering::AcqRel);
        if before != 0 && before != timeline {
            self.lock().clear();
            tracing::warn!(former_timeline = before, timeline, "database failover detected");
        }
    }

    /// The numbers that are known, and the definitions whose number is not.
    pub(crate) fn known(&self, wanted: impl Iterator<Item = DefinitionId>) -> (Numbers, Vec<DefinitionId>) {
        let cached = self.lock();
        let (mut numbers, mut missing) = (Numbers::default(), Vec::new());
        for definition in wanted {
            match cached.get(&definition) {
                Some(number) => _ = numbers.0.insert(definition, *number),
                None if missing.contains(&definition) => {}
                None => missing.push(definition),
            }
        }
        (numbers, missing)
    }

    /// The transaction that gave these numbers is committed.
    pub(crate) fn remember(&self, numbers: &Numbers) {
        self.lock().extend(numbers.0.iter().map(|(definition, number)| (definition.clone(), *number)));
    }
}

/// Numbers for one call.
#[derive(Debug, Default)]
pub(crate) struct Numbers(HashMap<DefinitionId, i32>);

impl Numbers {
    pub(crate) fn of(&self, operation: &'static str, definition: &DefinitionId) -> Result<i32, StoreError> {
        self.0.get(definition).copied().ok_or_else(|| misuse(operation, format!("{definition} was given no number")))
    }

    pub(crate) fn get(&self, definition: &DefinitionId) -> Option<i32> {
        self.0.get(definition).copied()
    }

    pub(crate) fn all(&self) -> Vec<i32> {
        self.0.values().copied().collect()
    }

    pub(crate) fn insert(&mut self, definition: DefinitionId, number: i32) {
        self.0.insert(definition, number);
    }
}
