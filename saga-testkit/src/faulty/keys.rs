use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::env::BoxFuture;
use saga_core::memory::MemoryConn;
use saga_core::store::{
    Admission, IdempotencyKey, IdempotencyKeys, KeyVerdict, KeyedBody, KeyedRequest, StoreError, StoreErrorKind,
};

use super::{FaultyStore, StoreFlaw};

/// A lease or a time to live that no check outlasts.
const LONG: Duration = Duration::from_hours(1_000);

type Body = Box<dyn KeyedBody<MemoryConn>>;

/// A body whose verdict is changed.
struct Judged {
    body: Body,
    change: fn(KeyVerdict) -> KeyVerdict,
    response: Arc<Mutex<Option<Vec<u8>>>>,
}

impl KeyedBody<MemoryConn> for Judged {
    fn run<'a>(&'a mut self, conn: &'a mut MemoryConn) -> BoxFuture<'a, KeyVerdict> {
        Box::pin(async move {
            let verdict = (self.change)(self.body.run(conn).await);
            if let KeyVerdict::Keep(response) = &verdict {
                *self.response.lock().unwrap_or_else(PoisonError::into_inner) = Some(response.clone());
            }
            verdict
        })
    }
}

/// A body that only asks whether it would run.
struct Ask;

impl KeyedBody<MemoryConn> for Ask {
    fn run<'a>(&'a mut self, _conn: &'a mut MemoryConn) -> BoxFuture<'a, KeyVerdict> {
        Box::pin(async { KeyVerdict::RollBack })
    }
}

impl FaultyStore {
    /// The request as the flaw sees it.
    fn seen(&self, request: KeyedRequest) -> Result<KeyedRequest, StoreError> {
        let mut request = request;
        if self.has(StoreFlaw::IgnoresPrincipals) {
            request.key = IdempotencyKey::new(request.key.tenant().clone(), "all", request.key.as_str())
                .map_err(|error| StoreError::new(StoreErrorKind::Misuse, "run_once", error.to_string()))?;
        }
        if self.has(StoreFlaw::IgnoresTheFingerprint) {
            request.fingerprint = [0; 32];
        }
        if self.has(StoreFlaw::KeepsKeysForGood) {
            request.ttl = LONG;
        }
        Ok(request)
    }

    fn judged(&self, body: Body) -> Judged {
        let change: fn(KeyVerdict) -> KeyVerdict = match self.flaw {
            Some(StoreFlaw::KeepsRefusedWrites) => |verdict| match verdict {
                KeyVerdict::RollBackAndKeep(response) => KeyVerdict::Keep(response),
                verdict => verdict,
            },
            Some(StoreFlaw::KeepsFailedKeys) => |verdict| match verdict {
                KeyVerdict::RollBack => KeyVerdict::RollBackAndKeep(Vec::new()),
                verdict => verdict,
            },
            _ => |verdict| verdict,
        };
        Judged { body, change, response: Arc::default() }
    }

    /// Commits what the body wrote, and its response in a second commit.
    async fn run_apart(&self, request: KeyedRequest, body: Body) -> Result<Admission<()>, StoreError> {
        let asked = self.inner.run_once(Some(request.clone()), Box::new(Ask)).await?;
        if asked != Admission::Granted(()) {
            return Ok(asked);
        }
        let body = self.judged(body);
        let response = Arc::clone(&body.response);
        self.inner.run_once(None, Box::new(body)).await?;
        let response = response.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(response), Admission::Granted(epoch)) = (response, self.inner.claim_key(&request, LONG).await?) {
            self.inner.complete_key(&request.key, epoch, &response).await?;
        }
        Ok(Admission::Granted(()))
    }
}

#[async_trait]
impl IdempotencyKeys for FaultyStore {
    async fn run_once(&self, request: Option<KeyedRequest>, body: Body) -> Result<Admission<()>, StoreError> {
        let Some(request) = request else {
            if self.has(StoreFlaw::LosesWritesWithoutKey) {
                let lost = Judged { change: |_| KeyVerdict::RollBack, ..self.judged(body) };
                return self.inner.run_once(None, Box::new(lost)).await;
            }
            return self.inner.run_once(None, body).await;
        };
        let request = self.seen(request)?;
        if self.has(StoreFlaw::CommitsResponsesLater) {
            return self.run_apart(request, body).await;
        }
        while self.has(StoreFlaw::WaitsForTheKey) {
            if self.inner.run_once(Some(request.clone()), Box::new(Ask)).await? != Admission::InFlight {
                break;
            }
            tokio::task::yield_now().await;
        }
        match self.inner.run_once(Some(request), Box::new(self.judged(body))).await {
            Err(error) if error.kind() == StoreErrorKind::Misuse && self.has(StoreFlaw::AcceptsEndedTransactions) => {
                Ok(Admission::Granted(()))
            }
            Err(error) if error.kind() == StoreErrorKind::UnknownCommit && self.has(StoreFlaw::HidesDoubt) => {
                Ok(Admission::Granted(()))
            }
            answer => answer,
        }
    }

    async fn claim_key(&self, request: &KeyedRequest, lease_ttl: Duration) -> Result<Admission<u64>, StoreError> {
        let request = self.seen(request.clone())?;
        match self.inner.claim_key(&request, lease_ttl).await? {
            Admission::InFlight if self.has(StoreFlaw::LeasesKeysTwice) => Ok(Admission::Granted(1)),
            admission => Ok(admission),
        }
    }

    async fn complete_key(&self, key: &IdempotencyKey, epoch: u64, response: &[u8]) -> Result<bool, StoreError> {
        let is_done = self.inner.complete_key(key, epoch, response).await?;
        Ok(is_done || self.has(StoreFlaw::CompletesUnderAnyEpoch))
    }

    async fn release_key(&self, key: &IdempotencyKey, epoch: u64) -> Result<bool, StoreError> {
        self.inner.release_key(key, epoch).await
    }

    async fn delete_expired_keys(&self, limit: usize) -> Result<u64, StoreError> {
        let limit = if self.has(StoreFlaw::DeletesKeysWithoutLimit) { usize::MAX } else { limit };
        self.inner.delete_expired_keys(limit).await
    }
}
