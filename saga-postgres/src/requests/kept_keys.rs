//! Which requests probably have a response, as far as this process has seen.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

use saga_core::store::IdempotencyKey;

/// How many keys are remembered, in 256 KiB. A key takes the place of another one.
const PLACES: usize = 65_536;

/// The share that stands for all requests.
const ALL: u32 = 1 << 16;

/// Each request moves the share by one in so many.
const RECENT: u32 = 16;

/// From this share on it costs less to look up every request than to roll back the transactions of those that were answered: by
/// `cargo xtask bench dedupe`, a lookup costs two thirds of such a transaction, or much less where requests are looked up together.
const WORTHWHILE: u32 = ALL / 4;

/// Remembers the hashes of some keys whose response is kept, and how many other requests had one. It may be wrong: the store decides.
pub(crate) struct KeptKeys {
    hasher: RandomState,
    places: Box<[AtomicU32]>,
    /// The share of the requests of late whose response another process kept.
    kept_elsewhere: AtomicU32,
}

impl KeptKeys {
    /// Whether it is worthwhile to look up the response of this request before a transaction begins.
    pub(crate) fn is_likely(&self, key: &IdempotencyKey) -> bool {
        self.has(key) || self.kept_elsewhere.load(Ordering::Relaxed) >= WORTHWHILE
    }

    /// A request came whose response is kept.
    pub(crate) fn found(&self, key: &IdempotencyKey) {
        if !self.has(key) {
            self.count(true);
            self.add(key);
        }
    }

    /// A request came whose response is not kept.
    pub(crate) fn missed(&self) {
        self.count(false);
    }

    /// Requests that come at the same time may count as one: it is an estimate.
    fn count(&self, is_kept: bool) {
        let share = self.kept_elsewhere.load(Ordering::Relaxed);
        let more = if is_kept { ALL / RECENT } else { 0 };
        self.kept_elsewhere.store(share - share / RECENT + more, Ordering::Relaxed);
    }

    /// Whether this key was added, and no other one took its place since.
    fn has(&self, key: &IdempotencyKey) -> bool {
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
        let places = (0..PLACES).map(|_| AtomicU32::new(0)).collect();
        Self { hasher: RandomState::new(), places, kept_elsewhere: AtomicU32::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use saga_core::Tenant;

    use super::*;

    fn key(number: u32) -> IdempotencyKey {
        IdempotencyKey::new(Tenant::default(), "ada", &format!("k-{number}")).unwrap()
    }

    #[test]
    fn a_key_that_was_added_is_known() {
        let kept = KeptKeys::default();
        assert!(!kept.is_likely(&key(1)));
        kept.add(&key(1));
        assert!(kept.is_likely(&key(1)) && !kept.is_likely(&key(2)));
    }

    #[test]
    fn every_request_is_looked_up_while_another_process_has_answered_many() {
        let kept = KeptKeys::default();
        (0..4).for_each(|number| kept.found(&key(number)));
        assert!(!kept.is_likely(&key(100)), "four in a row may be chance");
        (4..8).for_each(|number| kept.found(&key(number)));
        assert!(kept.is_likely(&key(100)));
        let ask = |number: u32, one_in: u32| {
            if number.is_multiple_of(one_in) {
                kept.found(&key(number));
            } else {
                kept.missed();
            }
        };
        // One in two goes on being worthwhile, and one in ten does not.
        for number in 8..200 {
            ask(number, 2);
            assert!(kept.is_likely(&key(1_000)), "{number}");
        }
        (200..400).for_each(|number| ask(number, 10));
        assert!(!kept.is_likely(&key(1_000)));
    }

    #[test]
    fn what_this_process_answered_says_nothing_about_other_requests() {
        let kept = KeptKeys::default();
        kept.add(&key(1));
        (0..100).for_each(|_| kept.found(&key(1)));
        assert!(!kept.is_likely(&key(2)));
    }
}
