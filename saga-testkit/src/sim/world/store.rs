use std::sync::Arc;
use std::time::Duration;

use saga_core::Tenant;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::{
    Applied, Changes, Claim, ClaimRequest, Claimed, ClaimedWork, ExpiredSaga, Incarnation, Lease, LockAnswer,
    LockRequest, MemberId, Members, Purge, Purged, Records, SemanticLocks, ShareRequest, Status, Store, StoreError,
    TransactError, TransactionBody, Unlock, Work, WorkKind, WorkRef,
};

use super::fault::Fault;
use super::forgetful_body::ForgetfulBody;
use super::hook::Hook;
use super::world::Seat;
use crate::checker::What;
use crate::intercept::{Intercept, Intercepted};
use crate::sim::sagas::{LOCKS, place_of};
use crate::sim::schedule::{Mutant, SagaScript};

/// The data of a service as one process reaches it.
pub(crate) type SimStore = Intercepted<SimCalls>;

/// The calls of one process, with what was wrong with claims once where the schedule plants it.
#[derive(Debug, Clone)]
pub(crate) struct SimCalls {
    data: MemoryStore,
    /// Where the process sits in the simulated world; `None` where nothing disturbs the calls.
    seat: Option<Seat>,
}

/// The data where nothing happens to the calls.
pub(crate) fn undisturbed(data: MemoryStore) -> SimStore {
    Intercepted(SimCalls { data, seat: None })
}

/// The data as a process reaches it.
pub(crate) fn reached_from(seat: Seat, data: &MemoryStore) -> SimStore {
    let data = data.clone().with_commit_hook(Arc::new(Hook { seat: seat.clone() }));
    Intercepted(SimCalls { data, seat: Some(seat) })
}

impl SimCalls {
    fn has(&self, mutant: Mutant) -> bool {
        self.seat.as_ref().is_some_and(|seat| seat.world.scenario.mutant == Some(mutant))
    }

    /// Whether a process takes what it has once claimed for its own, whatever has become of that.
    fn believes_blindly(&self) -> bool {
        self.has(Mutant::BeginsBlindly) || self.has(Mutant::BeginsAndForgets)
    }

    fn is_cut_off(&self) -> bool {
        self.seat.as_ref().is_some_and(|seat| seat.world.is_cut_off(seat.process))
    }

    fn claimed(&self, mut claimed: Claimed) -> Claimed {
        if let Some(seat) = self.seat.as_ref().filter(|seat| seat.world.scenario.load.is_some()) {
            claimed
                .work
                .iter()
                .filter(|work| work.recovered && !work.began)
                .for_each(|work| note(seat, work, &claimed));
        }
        if self.has(Mutant::MarksWaitingAsBegun) {
            claimed.work.iter_mut().for_each(|work| work.began |= work.recovered);
        }
        claimed
    }
}

/// Writes down that what the owner that vanished had was only waiting.
fn note(seat: &Seat, work: &ClaimedWork, claimed: &Claimed) {
    let Some((row, _)) = claimed.sagas.iter().find(|(row, _)| row.id == work.saga) else { return };
    let is_it = |script: &SagaScript| script.tenant == row.tenant.as_str() && script.key == row.key.as_str();
    let saga = seat.world.scenario.sagas.iter().position(is_it);
    if let (WorkKind::Do, Some(saga), Some(step)) = (work.kind, saga, place_of(work.step.as_str())) {
        seat.enter(What::TookWaiting { saga: saga as u32, step, epoch: work.work.epoch });
    }
}

impl Intercept for SimCalls {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.data
    }

    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<MemoryConn>>,
    ) -> Result<(), TransactError> {
        let has_several = claims.windows(2).any(|pair| pair[0].tenant != pair[1].tenant);
        let forgets = self.has(Mutant::ForgetsKeptLocks);
        let body: Box<dyn TransactionBody<_>> = if forgets { Box::new(ForgetfulBody(body)) } else { body };
        let answer = self.data.transact(claims, body).await;
        if let Some(seat) = self.seat.as_ref().filter(|_| has_several && answer.is_ok()) {
            seat.world.hit(Fault::TenantsShared);
        }
        answer
    }

    async fn claim(&self, mut request: ClaimRequest) -> Result<Claimed, StoreError> {
        request.takes_over |= self.has(Mutant::ReleasesRowsOnRejoin);
        Ok(self.claimed(self.data.claim(request).await?))
    }

    async fn claim_shares(&self, mut request: ShareRequest) -> Result<Claimed, StoreError> {
        request.takes_over |= self.has(Mutant::ReleasesRowsOnRejoin);
        Ok(self.claimed(self.data.claim_shares(request).await?))
    }

    async fn ask_for_locks(&self, requests: Vec<LockRequest>) -> Result<Vec<LockAnswer>, StoreError> {
        if self.has(Mutant::GrantsEveryLock) {
            let granted = |request: &LockRequest| LockAnswer::Granted(vec![1; request.entities.len()]);
            return Ok(requests.iter().map(granted).collect());
        }
        let Some(Seat { world, service, .. }) = &self.seat else { return self.data.ask_for_locks(requests).await };
        let asked: Vec<_> = requests.iter().map(|request| (*service, request.saga, request.name.clone())).collect();
        let answers = self.data.ask_for_locks(requests).await?;
        for (asked, answer) in asked.into_iter().zip(&answers) {
            world.locks.note(asked, answer).into_iter().for_each(|fault| world.hit(fault));
        }
        Ok(answers)
    }

    async fn record(&self, mut changes: Vec<Changes>) -> Result<Vec<Applied>, StoreError> {
        if self.has(Mutant::EndsLocksEarly) {
            for change in &mut changes {
                let turned = change.saga.as_ref().filter(|saga| saga.status == Status::Compensating);
                let ended =
                    turned.map(|saga| LOCKS.map(|name| Unlock::Lock(Tenant::default(), saga.id, name.to_owned())));
                change.unlocked.extend(ended.into_iter().flatten());
            }
        }
        self.data.record(changes).await
    }

    async fn begin(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        if self.believes_blindly() {
            if !self.is_cut_off() {
                self.data.begin(work, lease).await?;
            }
            return Ok(vec![true; work.len()]);
        }
        self.data.begin(work, lease).await
    }

    async fn rejoin(&self, former: MemberId, ttl: Duration) -> Result<Incarnation, StoreError> {
        if self.has(Mutant::ReleasesRowsOnRejoin) {
            return self.data.join(ttl).await;
        }
        self.data.rejoin(former, ttl).await
    }

    async fn purge(&self, epoch: u64, sagas: &[ExpiredSaga], retry_interval: Duration) -> Result<Purged, StoreError> {
        let Some(Seat { world, service, .. }) = &self.seat else {
            return self.data.purge(epoch, sagas, retry_interval).await;
        };
        world.purges.expect(world.control.now(), *service, sagas.iter().map(|saga| saga.id)).await;
        let purged = self.data.purge(epoch, sagas, retry_interval).await;
        world.enter_purges().await;
        purged
    }

    async fn heartbeat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError> {
        if self.believes_blindly() && self.is_cut_off() {
            return Ok(true);
        }
        self.data.heartbeat(member, ttl).await
    }
}
