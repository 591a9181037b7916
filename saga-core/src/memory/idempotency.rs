//! Requests that take effect once.

use std::time::Duration;

use async_trait::async_trait;

use super::MemoryStore;
use super::clock::Moment as _;
use super::commit_hook::CommitPoint;
use super::conn::{MemoryConn, TxState};
use super::data::Data;
use super::locks::{Lock, TxId};
use crate::store::{
    Admission, IdempotencyKey, IdempotencyKeys, KeyVerdict, KeyedBody, KeyedRequest, RetryClass, StoreError,
    StoreErrorKind, Timestamp,
};

const OPERATION: &str = "run_once";

/// A request, as it is kept.
#[derive(Debug)]
pub(super) struct KeptRequest {
    fingerprint: [u8; 32],
    epoch: u64,
    expires_at: Timestamp,
    state: KeptState,
}

#[derive(Debug)]
enum KeptState {
    /// A call outside of a transaction has the key until then.
    Leased(Timestamp),
    Answered(Vec<u8>),
}

#[async_trait]
impl IdempotencyKeys for MemoryStore {
    /// Dropping the future rolls back and frees the key.
    async fn run_once(
        &self,
        request: Option<KeyedRequest>,
        mut body: Box<dyn KeyedBody<MemoryConn>>,
    ) -> Result<Admission<()>, StoreError> {
        self.shared.clock.note_call();
        self.ask_hook(CommitPoint::Reading(OPERATION)).await?;
        let mut conn = MemoryConn::begin(&self.shared);
        let mut epoch = 1;
        if let Some(request) = &request {
            match admit(&mut self.shared.lock(), request, conn.tx, self.shared.now()) {
                Admission::Granted(next) => epoch = next,
                Admission::Replay(response) => return Ok(Admission::Replay(response)),
                Admission::InFlight => return Ok(Admission::InFlight),
                Admission::OtherRequest => return Ok(Admission::OtherRequest),
            }
        }
        self.ask_hook(CommitPoint::Claimed).await?;
        let savepoint = conn.savepoint();
        let verdict = body.run(&mut conn).await;
        self.ask_hook(CommitPoint::Handled(0)).await?;
        if conn.state == TxState::Ended {
            return Err(refused(StoreErrorKind::Misuse, "the body ended the transaction that it was given"));
        }
        let response = match verdict {
            KeyVerdict::RollBack => return Ok(Admission::Granted(())),
            KeyVerdict::Abandon => {
                let error = refused(StoreErrorKind::Other, "the body was dropped before its end");
                return Err(error.with_class(RetryClass::Transient));
            }
            _ if conn.state == TxState::Conflicted => {
                return Err(refused(StoreErrorKind::Conflict, "the body wrote a row that another transaction holds"));
            }
            KeyVerdict::Keep(response) => response,
            KeyVerdict::RollBackAndKeep(response) => {
                conn.roll_back_to(savepoint);
                response
            }
        };
        self.ask_hook(CommitPoint::Committing(OPERATION)).await?;
        conn.commit(|data, now| {
            let Some(KeyedRequest { key, fingerprint, ttl }) = request else { return };
            let state = KeptState::Answered(response);
            data.requests.insert(key, KeptRequest { fingerprint, epoch, expires_at: now.plus(ttl), state });
        });
        self.ask_hook(CommitPoint::Committed(OPERATION)).await?;
        Ok(Admission::Granted(()))
    }

    async fn claim_key(&self, request: &KeyedRequest, lease_ttl: Duration) -> Result<Admission<u64>, StoreError> {
        self.writing("claim_key", |data, now| {
            if data.locks.holder(&Lock::Request(request.key.clone()), None).is_some() {
                return Some(Ok(Admission::InFlight));
            }
            let answer = look_up(data, request, now);
            if let Admission::Granted(epoch) = answer {
                let kept = KeptRequest {
                    fingerprint: request.fingerprint,
                    epoch,
                    expires_at: now.plus(request.ttl),
                    state: KeptState::Leased(now.plus(lease_ttl)),
                };
                data.requests.insert(request.key.clone(), kept);
            }
            Some(Ok(answer))
        })
        .await
    }

    async fn complete_key(&self, key: &IdempotencyKey, epoch: u64, response: &[u8]) -> Result<bool, StoreError> {
        self.writing("complete_key", |data, _| {
            when_free(data, key)?;
            let kept = data.requests.get_mut(key).filter(|kept| is_leased(kept, epoch));
            let is_held = kept.is_some();
            if let Some(kept) = kept {
                kept.state = KeptState::Answered(response.to_vec());
            }
            Some(Ok(is_held))
        })
        .await
    }

    async fn release_key(&self, key: &IdempotencyKey, epoch: u64) -> Result<bool, StoreError> {
        self.writing("release_key", |data, _| {
            when_free(data, key)?;
            let is_held = data.requests.get(key).is_some_and(|kept| is_leased(kept, epoch));
            if is_held {
                data.requests.remove(key);
            }
            Some(Ok(is_held))
        })
        .await
    }

    async fn delete_expired_keys(&self, limit: usize) -> Result<u64, StoreError> {
        self.writing("delete_expired_keys", |data, now| {
            let is_over = |(_, kept): &(&IdempotencyKey, &KeptRequest)| kept.is_over(now);
            let over: Vec<_> = data.requests.iter().filter(is_over).map(|(key, _)| key.clone()).take(limit).collect();
            for key in &over {
                data.requests.remove(key);
            }
            Some(Ok(over.len() as u64))
        })
        .await
    }
}

impl KeptRequest {
    /// A lease counts also where it outlasts the time to live.
    fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at <= now && !matches!(self.state, KeptState::Leased(until) if until > now)
    }
}

fn is_leased(kept: &KeptRequest, epoch: u64) -> bool {
    kept.epoch == epoch && matches!(kept.state, KeptState::Leased(_))
}

/// `None` while a transaction has the key: whose it is shows when that has ended.
fn when_free(data: &Data, key: &IdempotencyKey) -> Option<()> {
    data.locks.holder(&Lock::Request(key.clone()), None).is_none().then_some(())
}

/// Locks the key for a transaction, if the request is granted.
fn admit(data: &mut Data, request: &KeyedRequest, me: TxId, now: Timestamp) -> Admission<u64> {
    let lock = Lock::Request(request.key.clone());
    if data.locks.holder(&lock, Some(me)).is_some() {
        return Admission::InFlight;
    }
    let answer = look_up(data, request, now);
    if matches!(answer, Admission::Granted(_)) {
        data.locks.take(lock, me);
    }
    answer
}

/// The answer to a request by what is kept; a granted one with its epoch.
fn look_up(data: &Data, request: &KeyedRequest, now: Timestamp) -> Admission<u64> {
    let kept = data.requests.get(&request.key);
    // Above every epoch that the key ever had, also if it was deleted meanwhile.
    let next = now.0.unsigned_abs().max(kept.map_or(0, |kept| kept.epoch + 1));
    match kept.filter(|kept| !kept.is_over(now)) {
        None => Admission::Granted(next),
        Some(kept) if kept.fingerprint != request.fingerprint => Admission::OtherRequest,
        Some(KeptRequest { state: KeptState::Answered(response), .. }) => Admission::Replay(response.clone()),
        Some(KeptRequest { state: KeptState::Leased(until), .. }) if *until > now => Admission::InFlight,
        Some(_) => Admission::Granted(next),
    }
}

fn refused(kind: StoreErrorKind, detail: &str) -> StoreError {
    StoreError::new(kind, OPERATION, detail)
}
