//! Requests that take effect once.

use std::time::Duration;

use async_trait::async_trait;

use crate::memory::MemoryStore;
use crate::memory::clock::Moment as _;
use crate::memory::commit_hook::CommitPoint;
use crate::memory::conn::{MemoryConn, TxState};
use crate::memory::tables::data::Data;
use crate::memory::tables::locks::{Lock, TxId};
use crate::memory::tables::request_table::KeptState;
use crate::store::{
    Admission, IdempotencyKey, IdempotencyKeys, KeyVerdict, KeyedBody, KeyedRequest, RetryClass, StoreError,
    StoreErrorKind, Timestamp,
};

const OPERATION: &str = "run_once";

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
            if let Some(request) = request {
                data.requests.keep(request, epoch, KeptState::Answered(response), now);
            }
        });
        self.ask_hook(CommitPoint::Committed(OPERATION)).await?;
        Ok(Admission::Granted(()))
    }

    async fn claim_key(&self, request: &KeyedRequest, lease_ttl: Duration) -> Result<Admission<u64>, StoreError> {
        self.writing("claim_key", |data, now| {
            if data.locks.holder(&Lock::Request(request.key.clone()), None).is_some() {
                return Some(Ok(Admission::InFlight));
            }
            let answer = data.requests.look_up(request, now);
            if let Admission::Granted(epoch) = answer {
                data.requests.keep(request.clone(), epoch, KeptState::Leased(now.plus(lease_ttl)), now);
            }
            Some(Ok(answer))
        })
        .await
    }

    async fn complete_key(&self, key: &IdempotencyKey, epoch: u64, response: &[u8]) -> Result<bool, StoreError> {
        self.writing("complete_key", |data, _| {
            when_free(data, key)?;
            Some(Ok(data.requests.complete(key, epoch, response)))
        })
        .await
    }

    async fn release_key(&self, key: &IdempotencyKey, epoch: u64) -> Result<bool, StoreError> {
        self.writing("release_key", |data, _| {
            when_free(data, key)?;
            Some(Ok(data.requests.release(key, epoch)))
        })
        .await
    }
}

impl MemoryStore {
    /// Deletes keys whose time to live is over.
    pub(in crate::memory) async fn forget_keys(&self, limit: usize) -> Result<u64, StoreError> {
        self.writing("delete_expired_keys", |data, now| Some(Ok(data.requests.delete_expired(limit, now)))).await
    }
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
    let answer = data.requests.look_up(request, now);
    if matches!(answer, Admission::Granted(_)) {
        data.locks.take(lock, me);
    }
    answer
}

fn refused(kind: StoreErrorKind, detail: &str) -> StoreError {
    StoreError::new(kind, OPERATION, detail)
}
