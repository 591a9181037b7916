use std::time::Duration;

use async_trait::async_trait;
use saga_core::store::{
    ClaimRequest, Claimed, ClaimedWork, DefinitionId, Lease, MemberId, Members as _, Records as _, ShareRequest,
    StoreError, Timestamp, Work, WorkId, WorkRef,
};

use super::{FaultyStore, StoreFlaw};

#[async_trait]
impl Work for FaultyStore {
    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        let mut request = request;
        request.lease = self.revived_lease(request.lease);
        request.takes_over |= self.has(StoreFlaw::AlwaysTakesOver);
        self.let_dead_claim(StoreFlaw::LetsDeadMembersClaim, &mut request.lease).await?;
        if self.has(StoreFlaw::ClaimsUnknown) {
            let known = request.definitions.iter().cloned().chain(self.noted().definitions.clone());
            request.definitions = known.collect();
        }
        let mut claimed = self.inner.claim(request).await?;
        self.note_claim(&mut claimed.work);
        self.add_records_of_namesakes(&mut claimed).await?;
        Ok(claimed)
    }

    async fn claim_shares(&self, request: ShareRequest) -> Result<Claimed, StoreError> {
        let mut request = request;
        request.lease = self.revived_lease(request.lease);
        if self.has(StoreFlaw::IgnoresTheShares) {
            request.shares.iter_mut().for_each(|share| share.limit = usize::MAX);
        }
        request.takes_over |= self.has(StoreFlaw::AlwaysTakesSharesOver);
        self.let_dead_claim(StoreFlaw::LetsDeadMembersClaimShares, &mut request.lease).await?;
        let mut claimed = self.inner.claim_shares(request).await?;
        self.note_claim(&mut claimed.work);
        self.add_records_of_namesakes(&mut claimed).await?;
        for work in &mut claimed.work {
            let is_hidden = self.has(StoreFlaw::HidesRecoveryInShares);
            (work.recovered, work.began) = (work.recovered && !is_hidden, work.began && !is_hidden);
            work.began |= work.recovered && self.has(StoreFlaw::MarksWaitingSharesAsBegun);
        }
        if self.has(StoreFlaw::ClaimsSharesWithoutRecords) {
            claimed.sagas.iter_mut().for_each(|(_, records)| records.clear());
        }
        Ok(claimed)
    }

    async fn renew(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        let lease = self.revived_lease(lease);
        let ttl = if self.has(StoreFlaw::RenewsForNoTime) { Duration::ZERO } else { lease.ttl };
        self.inner.renew(&self.all_inward(work), Lease { ttl, ..lease }).await
    }

    async fn begin(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        if self.has(StoreFlaw::MarksNoBeginning) {
            return self.renew(work, lease).await;
        }
        let begun = self.inner.begin(&self.all_inward(work), self.revived_lease(lease)).await?;
        let any_epoch = self.has(StoreFlaw::BeginsUnderAnyEpoch);
        Ok(begun.into_iter().map(|begun| begun || any_epoch).collect())
    }

    async fn release_work(&self, work: &[WorkRef]) -> Result<Vec<bool>, StoreError> {
        let given_back = self.inner.release_work(&self.all_inward(work)).await?;
        let mut noted = self.noted();
        for (work, _) in work.iter().zip(&given_back).filter(|(_, is_freed)| **is_freed) {
            *noted.epochs.entry(work.id).or_insert(work.epoch) += 1;
            if self.has(StoreFlaw::KeepsTheEpoch) {
                *noted.lags.entry(work.id).or_default() += 1;
            }
        }
        Ok(given_back)
    }

    async fn release_unbegun(&self, owner: MemberId) -> Result<u64, StoreError> {
        if self.has(StoreFlaw::KeepsUnbegun) {
            return Ok(0);
        }
        let owner = self.revived(owner);
        if self.has(StoreFlaw::ReleasesTheBegun) {
            let known =
                self.noted().epochs.iter().map(|(id, epoch)| WorkRef { id: *id, epoch: *epoch }).collect::<Vec<_>>();
            self.inner.release_work(&known).await?;
        }
        self.inner.release_unbegun(owner).await
    }

    async fn begin_attempt(&self, work: WorkRef, attempt: u32) -> Result<bool, StoreError> {
        if self.has(StoreFlaw::CountsNoAttempts) {
            return Ok(self.noted().epochs.get(&work.id) == Some(&work.epoch));
        }
        self.inner.begin_attempt(self.all_inward(&[work])[0], attempt).await
    }

    async fn report(
        &self,
        work: WorkRef,
        number: u64,
        progress: &[u8],
        lease: Option<Lease>,
    ) -> Result<bool, StoreError> {
        let mut work = self.all_inward(&[work])[0];
        if self.has(StoreFlaw::ReportsUnderAnyEpoch) {
            work.epoch = self.noted().epochs.get(&work.id).copied().unwrap_or(work.epoch);
        }
        let number = if self.has(StoreFlaw::AcceptsAnyReport) { u64::MAX } else { number };
        let lease = lease.filter(|_| !self.has(StoreFlaw::ReportsRenewNothing));
        self.inner.report(work, number, progress, lease.map(|lease| self.revived_lease(lease))).await
    }

    async fn note_late(&self, work: WorkId, output: &[u8]) -> Result<bool, StoreError> {
        if self.has(StoreFlaw::LosesLateSuccess) {
            return Ok(self.noted().epochs.contains_key(&work));
        }
        self.inner.note_late(work, output).await
    }

    async fn backlog(&self) -> Result<(u64, Option<Duration>), StoreError> {
        self.inner.backlog().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
    }

    async fn unknown_work(&self, known: &[DefinitionId]) -> Result<Vec<(DefinitionId, u64)>, StoreError> {
        self.inner.unknown_work(known).await
    }
}

impl FaultyStore {
    fn all_inward(&self, work: &[WorkRef]) -> Vec<WorkRef> {
        if self.has(StoreFlaw::IgnoresTheEpoch) || self.has(StoreFlaw::GrantsAnyEpoch) {
            return work.to_vec();
        }
        work.iter().map(|work| self.inward(*work)).collect()
    }

    /// With this flaw, a dead member claims as a new one would.
    async fn let_dead_claim(&self, flaw: StoreFlaw, lease: &mut Lease) -> Result<(), StoreError> {
        if self.has(flaw) && !self.inner.heartbeat(lease.owner, lease.ttl).await? {
            lease.owner = self.inner.join(lease.ttl).await?.member;
        }
        Ok(())
    }

    /// Adds the records that sagas of other tenants have under the same keys.
    async fn add_records_of_namesakes(&self, claimed: &mut Claimed) -> Result<(), StoreError> {
        if !self.has(StoreFlaw::ClaimsRecordsOfEveryTenant) {
            return Ok(());
        }
        let tenants = self.noted().tenants.clone();
        for (saga, records) in &mut claimed.sagas {
            for tenant in tenants.iter().filter(|tenant| **tenant != saga.tenant) {
                records.extend(self.inner.records_of_steps(tenant, &saga.key).await?);
            }
        }
        Ok(())
    }

    /// Remembers what was claimed, and adds what should not have been.
    fn note_claim(&self, claimed: &mut Vec<ClaimedWork>) {
        let mut noted = self.noted();
        for work in claimed.iter_mut() {
            noted.epochs.insert(work.work.id, work.work.epoch);
            work.work.epoch -= noted.lags.get(&work.work.id).copied().unwrap_or(0);
            work.recovered &= !self.has(StoreFlaw::HidesRecovery);
            work.began |= work.recovered && self.has(StoreFlaw::MarksWaitingAsBegun);
            work.reported.take_if(|_| self.has(StoreFlaw::ForgetsReports));
            if self.has(StoreFlaw::RestartsTheRetryClock) {
                work.retrying_for = work.retrying_for.map(|_| Duration::ZERO);
            }
        }
        let again = match self.flaw {
            Some(StoreFlaw::LeasesTwice) => noted.last_claim.clone(),
            Some(StoreFlaw::ReleasesRunningRows) => noted.running.clone(),
            Some(StoreFlaw::ClaimsRecorded) => std::mem::take(&mut noted.recorded),
            _ => Vec::new(),
        };
        if !claimed.is_empty() {
            noted.last_claim.clone_from(claimed);
        }
        claimed.extend(again);
    }
}
