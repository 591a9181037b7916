use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::env::BoxFuture;
use saga_core::key::{Key, Tenant};
use saga_core::memory::MemoryConn;
use saga_core::store::{
    Changes, Claim, HandlerVerdict, LockAnswer, LockFilter, LockRequest, LocksOfClaims, MovedSaga, Records,
    SemanticLocks, Store, StoreError, StoredLock, TakenLock, TransactionBody, Unlock, Work,
};

use super::{FaultyStore, StoreFlaw};

/// How long a request waits that should not wait any more.
const ON_AND_ON: Duration = Duration::from_hours(1);

#[async_trait]
impl SemanticLocks for FaultyStore {
    async fn ask_for_locks(&self, requests: Vec<LockRequest>) -> Result<Vec<LockAnswer>, StoreError> {
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            answers.push(self.ask(request).await?);
        }
        Ok(answers)
    }

    async fn end_abandoned_locks(&self, limit: usize) -> Result<u64, StoreError> {
        if self.has(StoreFlaw::KeepsAbandonedLocks) {
            return Ok(0);
        }
        if self.has(StoreFlaw::EndsEveryLock) {
            let granted = std::mem::take(&mut self.noted().granted);
            for lock in granted {
                let unlocked = vec![Unlock::Lock(lock.tenant, lock.saga, lock.name)];
                self.inner.record(vec![Changes { unlocked, ..Changes::default() }]).await?;
            }
        }
        self.inner.end_abandoned_locks(limit).await
    }

    async fn locks(&self, filter: &LockFilter) -> Result<Vec<StoredLock>, StoreError> {
        self.inner.locks(filter).await
    }
}

impl FaultyStore {
    async fn ask(&self, request: LockRequest) -> Result<LockAnswer, StoreError> {
        let mut request = request;
        if self.has(StoreFlaw::SharesLocks)
            && let Ok(anyone) = Key::new("anyone")
        {
            request.owner = anyone;
        }
        if self.has(StoreFlaw::LocksTheFirstEntityOnly) {
            request.entities.truncate(1);
        }
        if self.has(StoreFlaw::LocksAcrossTenants) {
            request.tenant = Tenant::default();
        }
        let mut answer = self.ask_inner(&request).await?;
        if answer == LockAnswer::Gone && self.has(StoreFlaw::LocksUnderAnyEpoch) {
            let epoch = self.noted().epochs.get(&request.work.id).copied();
            request.work.epoch = epoch.unwrap_or(request.work.epoch);
            answer = self.ask_inner(&request).await?;
        }
        if matches!(answer, LockAnswer::Granted(_)) {
            self.noted().granted.push(request.clone());
        }
        match &mut answer {
            LockAnswer::Granted(tokens) if self.has(StoreFlaw::RepeatsTokens) => tokens.fill(1),
            LockAnswer::Waits(_) if self.has(StoreFlaw::CountsWaitsAsAttempts) => {
                self.inner.begin_attempt(request.work, 1).await?;
            }
            LockAnswer::Waits(_) if self.has(StoreFlaw::LetsLaterWaitsOvertake) => self.overtake(request).await?,
            LockAnswer::Deadlock(_) if self.has(StoreFlaw::FindsNoDeadlocks) => answer = LockAnswer::Waits(ON_AND_ON),
            LockAnswer::TimedOut(_) if self.has(StoreFlaw::WaitsForGood) => answer = LockAnswer::Waits(ON_AND_ON),
            _ => {}
        }
        Ok(answer)
    }

    /// What is said of the locks of claims in the place of what is so: then the claims are left without locks.
    pub(super) async fn made_up_locks(&self, claims: &mut [Claim]) -> LocksOfClaims {
        let has_locks = |(_, claim): &(usize, &Claim)| !claim.locks.is_empty();
        let mut made_up = Vec::new();
        if self.has(StoreFlaw::TakesLocksOfOthers) {
            let all = |claim: &Claim| claim.locks.iter().map(|wanted| Some(made_up_lock(&wanted.request))).collect();
            made_up = claims.iter().enumerate().filter(has_locks).map(|(index, claim)| (index, all(claim))).collect();
        }
        if self.has(StoreFlaw::LetsGoBeforeTheCommit) && claims.iter().enumerate().any(|claim| has_locks(&claim)) {
            let probe = Probe::default();
            let taken = Arc::clone(&probe.0);
            // It rolls back, as it was not granted what it came for.
            _ = self.inner.transact(claims.to_vec(), Box::new(probe)).await;
            made_up = std::mem::take(&mut *taken.lock().unwrap_or_else(PoisonError::into_inner));
            let has_all = |taken: &[Option<TakenLock>]| taken.iter().all(Option::is_some);
            if !made_up.iter().all(|(_, taken)| has_all(taken)) {
                return Vec::new();
            }
        }
        for (index, _) in &made_up {
            claims[*index].locks.clear();
        }
        made_up
    }

    /// Keeps the locks of a transaction that has ended.
    pub(super) async fn keep_behind(&self, is_committed: bool) -> Result<(), StoreError> {
        let kept = std::mem::take(&mut self.noted().kept);
        if self.has(StoreFlaw::KeepsLocksOfWhatFails) {
            self.inner.record(vec![Changes { locked: kept, ..Changes::default() }]).await?;
        } else if is_committed {
            for lock in kept {
                self.ask_inner(&lock.wanted.request).await?;
            }
        }
        Ok(())
    }

    async fn ask_inner(&self, request: &LockRequest) -> Result<LockAnswer, StoreError> {
        let answers = self.inner.ask_for_locks(vec![request.clone()]).await?;
        Ok(answers.into_iter().next().unwrap_or(LockAnswer::Gone))
    }

    /// The requests that waited before ask again, behind the new one.
    async fn overtake(&self, request: LockRequest) -> Result<(), StoreError> {
        let earlier = std::mem::take(&mut self.noted().waits);
        let is_other = |other: &&LockRequest| (other.saga, &other.name) != (request.saga, &request.name);
        for other in earlier.iter().filter(is_other) {
            let unlocked = vec![Unlock::Lock(other.tenant.clone(), other.saga, other.name.clone())];
            self.inner.record(vec![Changes { unlocked, ..Changes::default() }]).await?;
            self.ask_inner(other).await?;
        }
        self.noted().waits = earlier;
        self.noted().waits.push(request);
        Ok(())
    }

    /// The locks whose ends are written behind the commit, and not in it.
    pub(super) fn unlocks_of_later(&self, changes: &mut [Changes]) -> Vec<Unlock> {
        if !self.has(StoreFlaw::UnlocksInACommitOfItsOwn) {
            return Vec::new();
        }
        changes.iter_mut().flat_map(|change| std::mem::take(&mut change.unlocked)).collect()
    }
}

fn made_up_lock(request: &LockRequest) -> TakenLock {
    TakenLock { tokens: vec![1; request.entities.len()], is_stored: false, has_waited: false }
}

/// A body that only looks at its locks.
#[derive(Default)]
struct Probe(Arc<Mutex<LocksOfClaims>>);

impl TransactionBody<MemoryConn> for Probe {
    fn granted(&mut self, _granted: &[bool]) {}

    fn locked(&mut self, index: usize, taken: Vec<Option<TakenLock>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((index, taken));
    }

    fn time_limit(&self, _index: usize) -> Duration {
        ON_AND_ON
    }

    fn run<'a>(&'a mut self, _index: usize, _conn: &'a mut MemoryConn) -> BoxFuture<'a, HandlerVerdict> {
        Box::pin(async { HandlerVerdict::Conflict })
    }

    fn changes(&mut self) -> Vec<Changes> {
        Vec::new()
    }

    fn decide_again(&mut self, _moved: Vec<MovedSaga>) -> Option<Vec<Changes>> {
        None
    }
}
