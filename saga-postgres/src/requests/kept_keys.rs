//! Which keys have a response, as far as this process has seen.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

use saga_core::store::IdempotencyKey;

/// How many keys are remembered, in 256 KiB. A key takes the place of another one.
const PLACES: usize = 65_536;

/// Remembers the hashes of some keys whose response is kept. It may be wrong: the store decides.
pub(crate) struct KeptKeys {
    hasher: RandomState,
    places: Box<[AtomicU32]>,
}

impl KeptKeys {
    /// Whether this key was added, and no other one took its place since.
    pub(crate) fn has(&self, key: &IdempotencyKey) -> bool {
        let (place, hash) = self.place(key);
        place.is_some_and(|place| place.load(Ordering::Relaxed) == hash)
    }

    pub(crate) fn add(&self, key: &IdempotencyKey) {
        let (place, hash) = self.place(key);
        if let Some(place) = place {
            place.store(hash, Ordering::Relaxed);
        }
    }

    /// Part of the hash is the place, the upper half of it is what stands there.
    fn place(&self, key: &IdempotencyKey) -> (Option<&AtomicU32>, u32) {
        let hash = self.hasher.hash_one(key);
        let place = usize::try_from(hash % PLACES as u64).ok().and_then(|place| self.places.get(place));
        // The upper half fits.
        (place, u32::try_from(hash >> 32).unwrap_or_default())
    }
}

impl Default for KeptKeys {
    fn default() -> Self {
        Self { hasher: RandomState::new(), places: (0..PLACES).map(|_| AtomicU32::new(0)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use saga_core::Tenant;

    use super::*;

    #[test]
    fn a_key_that_was_added_is_known() {
        let key = |key: &str| IdempotencyKey::new(Tenant::default(), "ada", key).unwrap();
        let kept = KeptKeys::default();
        assert!(!kept.has(&key("k-1")));
        kept.add(&key("k-1"));
        assert!(kept.has(&key("k-1")));
    }
}
