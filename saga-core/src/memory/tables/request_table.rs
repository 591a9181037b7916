//! The requests that take effect once.

use std::collections::BTreeMap;

use crate::memory::clock::Moment as _;
use crate::store::{Admission, IdempotencyKey, KeyedRequest, Timestamp};

/// The requests, by key.
#[derive(Debug, Default)]
pub(in crate::memory) struct RequestTable(BTreeMap<IdempotencyKey, KeptRequest>);

/// A request, as it is kept.
#[derive(Debug)]
struct KeptRequest {
    fingerprint: [u8; 32],
    epoch: u64,
    expires_at: Timestamp,
    state: KeptState,
}

#[derive(Debug)]
pub(in crate::memory) enum KeptState {
    /// A call outside of a transaction has the key until then.
    Leased(Timestamp),
    Answered(Vec<u8>),
}

impl RequestTable {
    /// The answer to a request by what is kept; a granted one with its epoch.
    pub(in crate::memory) fn look_up(&self, request: &KeyedRequest, now: Timestamp) -> Admission<u64> {
        let kept = self.0.get(&request.key);
        // Above every epoch that the key ever had, also if it was deleted meanwhile.
        let next = now.0.unsigned_abs().max(kept.map_or(0, |kept| kept.epoch + 1));
        let Some(kept) = kept.filter(|kept| !kept.is_over(now)) else { return Admission::Granted(next) };
        if kept.fingerprint != request.fingerprint {
            return Admission::OtherRequest;
        }
        match &kept.state {
            KeptState::Answered(response) => Admission::Replay(response.clone()),
            KeptState::Leased(until) if *until > now => Admission::InFlight,
            KeptState::Leased(_) => Admission::Granted(next),
        }
    }

    pub(in crate::memory) fn keep(&mut self, request: KeyedRequest, epoch: u64, state: KeptState, now: Timestamp) {
        let KeyedRequest { key, fingerprint, ttl } = request;
        self.0.insert(key, KeptRequest { fingerprint, epoch, expires_at: now.plus(ttl), state });
    }

    /// Keeps the response, if the key is leased under this epoch.
    pub(in crate::memory) fn complete(&mut self, key: &IdempotencyKey, epoch: u64, response: &[u8]) -> bool {
        let kept = self.0.get_mut(key).filter(|kept| kept.is_leased(epoch));
        let is_held = kept.is_some();
        if let Some(kept) = kept {
            kept.state = KeptState::Answered(response.to_vec());
        }
        is_held
    }

    /// Frees the key, if it is leased under this epoch.
    pub(in crate::memory) fn release(&mut self, key: &IdempotencyKey, epoch: u64) -> bool {
        let is_held = self.0.get(key).is_some_and(|kept| kept.is_leased(epoch));
        if is_held {
            self.0.remove(key);
        }
        is_held
    }

    /// Deletes keys whose time is over, and answers how many.
    pub(in crate::memory) fn delete_expired(&mut self, limit: usize, now: Timestamp) -> u64 {
        let over = self.0.iter().filter(|(_, kept)| kept.is_over(now)).map(|(key, _)| key.clone());
        let over: Vec<_> = over.take(limit).collect();
        for key in &over {
            self.0.remove(key);
        }
        over.len() as u64
    }
}

impl KeptRequest {
    /// A lease counts also where it outlasts the time to live.
    fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at <= now && !matches!(self.state, KeptState::Leased(until) if until > now)
    }

    fn is_leased(&self, epoch: u64) -> bool {
        self.epoch == epoch && matches!(self.state, KeptState::Leased(_))
    }
}
