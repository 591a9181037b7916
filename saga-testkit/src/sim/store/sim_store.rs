use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::{
    Capabilities, Claim, ClaimRequest, Claimed, ClaimedWork, DefinitionId, Incarnation, Lease, MemberId, Members,
    ShareRequest, Store, StoreError, Timestamp, TransactError, TransactionBody, Work, WorkId, WorkKind, WorkRef,
};

use crate::checker::What;
use crate::sim::hook::Hook;
use crate::sim::world::{Seat, place_of};
use crate::sim::{Plant, SagaScript};

/// The data of a service as one process reaches it, with what was wrong with claims once where the schedule plants it.
#[derive(Debug, Clone)]
pub(crate) struct SimStore {
    pub(super) data: MemoryStore,
    /// Who reaches it; nobody in particular where nothing disturbs the calls.
    seat: Option<Seat>,
}

impl SimStore {
    /// The data where nothing happens to the calls.
    pub(crate) fn undisturbed(data: MemoryStore) -> Self {
        Self { data, seat: None }
    }

    /// The data as a process reaches it.
    pub(crate) fn of(data: MemoryStore, seat: Seat) -> Self {
        Self { data: data.with_commit_hook(Arc::new(Hook { seat: seat.clone() })), seat: Some(seat) }
    }

    fn has(&self, plant: Plant) -> bool {
        self.seat.as_ref().is_some_and(|seat| seat.world.scenario.plant == Some(plant))
    }

    /// Whether a process takes what it has once claimed for its own, whatever has become of that.
    fn believes_blindly(&self) -> bool {
        self.has(Plant::BeginsBlindly) || self.has(Plant::BeginsAndForgets)
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
        if self.has(Plant::TakesWaitingForBegun) {
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

#[async_trait]
impl Store for SimStore {
    type Conn = MemoryConn;

    fn capabilities(&self) -> Capabilities {
        self.data.capabilities()
    }

    fn is_conflict(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        self.data.is_conflict(error)
    }

    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<Self::Conn>>,
    ) -> Result<(), TransactError> {
        self.data.transact(claims, body).await
    }
}

#[async_trait]
impl Work for SimStore {
    async fn claim(&self, mut request: ClaimRequest) -> Result<Claimed, StoreError> {
        request.takes_over |= self.has(Plant::LeavesOwnRows);
        Ok(self.claimed(self.data.claim(request).await?))
    }

    async fn claim_shares(&self, mut request: ShareRequest) -> Result<Claimed, StoreError> {
        request.takes_over |= self.has(Plant::LeavesOwnRows);
        Ok(self.claimed(self.data.claim_shares(request).await?))
    }

    async fn renew(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.data.renew(work, lease).await
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

    async fn release_work(&self, work: &[WorkRef]) -> Result<Vec<bool>, StoreError> {
        self.data.release_work(work).await
    }

    async fn begin_attempt(&self, work: WorkRef, attempt: u32) -> Result<bool, StoreError> {
        self.data.begin_attempt(work, attempt).await
    }

    async fn report(
        &self,
        work: WorkRef,
        number: u64,
        progress: &[u8],
        lease: Option<Lease>,
    ) -> Result<bool, StoreError> {
        self.data.report(work, number, progress, lease).await
    }

    async fn note_late(&self, work: WorkId, output: &[u8]) -> Result<bool, StoreError> {
        self.data.note_late(work, output).await
    }

    async fn backlog(&self) -> Result<(u64, Option<Duration>), StoreError> {
        self.data.backlog().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.data.now().await
    }

    async fn unknown_work(&self, known: &[DefinitionId]) -> Result<Vec<(DefinitionId, u64)>, StoreError> {
        self.data.unknown_work(known).await
    }
}

#[async_trait]
impl Members for SimStore {
    async fn join(&self, ttl: Duration) -> Result<Incarnation, StoreError> {
        self.data.join(ttl).await
    }

    async fn rejoin(&self, former: MemberId, ttl: Duration) -> Result<Incarnation, StoreError> {
        if self.has(Plant::LeavesOwnRows) {
            return self.data.join(ttl).await;
        }
        self.data.rejoin(former, ttl).await
    }

    async fn heartbeat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError> {
        if self.believes_blindly() && self.is_cut_off() {
            return Ok(true);
        }
        self.data.heartbeat(member, ttl).await
    }

    async fn leave(&self, member: MemberId) -> Result<(), StoreError> {
        self.data.leave(member).await
    }
}
