use std::time::Duration;

use async_trait::async_trait;
use saga_core::key::{Key, Tenant};
use saga_core::store::{
    Changes, DeadLetterFilter, DeadLetterState, DeadLetters, DefinitionId, EndedExpired, ExpireEnded, ExpiredCount,
    ExpiredSaga, Expiry, KnownSaga, MemberId, NewDeadLetter, NewRecord, NewSaga, Outbox, Purge, Purged, Records,
    SagaId, SagaWithSteps, Sagas, StepRecord, StoreError, Unclosed, UnclosedFilter,
};

use super::{FaultyStore, StoreFlaw};

/// By how much the clock of the process is ahead of the store's.
const AHEAD: Duration = Duration::from_hours(365 * 24);

/// The time of the tests' counting from now.
const LATER: Duration = Duration::from_hours(1);

#[async_trait]
impl Purge for FaultyStore {
    async fn lease_maintenance(&self, owner: MemberId, ttl: Duration) -> Result<Option<u64>, StoreError> {
        let epoch = self.inner.lease_maintenance(owner, ttl).await?;
        if let Some(epoch) = epoch {
            self.noted().maintenance = epoch;
        }
        Ok(epoch)
    }

    async fn expired(&self, limit: usize) -> Result<Vec<ExpiredSaga>, StoreError> {
        if self.has(StoreFlaw::ListsExpiredById) {
            let mut all = self.inner.expired(usize::MAX).await?;
            all.sort_by_key(|saga| saga.id);
            all.truncate(limit);
            return Ok(all);
        }
        if !self.has(StoreFlaw::ExpiresByTheProcessClock) {
            return self.inner.expired(limit).await;
        }
        self.clock.advance(AHEAD);
        let expired = self.inner.expired(limit).await;
        self.clock.go_back(AHEAD);
        expired
    }

    async fn whole_sagas(&self, sagas: &[SagaId]) -> Result<Vec<SagaWithSteps>, StoreError> {
        self.inner.whole_sagas(sagas).await
    }

    async fn purge(&self, epoch: u64, sagas: &[ExpiredSaga], retry_interval: Duration) -> Result<Purged, StoreError> {
        let ids: Vec<SagaId> = sagas.iter().map(|saga| saga.id).collect();
        let before = self.inner.whole_sagas(&ids).await?;
        let mut sagas = sagas.to_vec();
        if self.has(StoreFlaw::LooksOnlyOnce) {
            self.take_time_away(&mut sagas).await?;
        }
        if self.has(StoreFlaw::PurgesSubSagasFirst) {
            self.purge_sub_sagas(epoch, &before).await?;
        }
        if self.has(StoreFlaw::IgnoresOpenLetters) {
            self.discard_letters().await?;
        }
        if self.has(StoreFlaw::IgnoresTheOutbox) {
            let sent: Vec<_> = self.noted().sent.iter().copied().collect();
            self.inner.sent(&sent).await?;
        }
        let newest = self.noted().maintenance;
        let epoch = if self.has(StoreFlaw::PurgesUnderAnyEpoch) { newest } else { epoch };
        let retry_interval = if self.has(StoreFlaw::RetriesPurgesHourly) { LATER } else { retry_interval };
        let purged = self.inner.purge(epoch, &sagas, retry_interval).await?;
        let gone = |saga: &&SagaWithSteps| {
            let of = saga.saga.key.as_str().split('>').next();
            let outer = before.iter().find(|outer| Some(outer.saga.key.as_str()) == of);
            outer.is_some_and(|outer| !purged.kept.iter().any(|(kept, _)| *kept == outer.saga.id))
        };
        if self.has(StoreFlaw::DeletesSagasFirst) {
            let records =
                before.iter().filter(gone).flat_map(|saga| saga.records.iter().map(|record| again(saga, record)));
            self.inner.record(vec![Changes { records: records.collect(), ..Changes::default() }]).await?;
        }
        if self.has(StoreFlaw::PurgesHalfAFamily) {
            let subs = before.iter().filter(gone).filter(|saga| saga.saga.key.as_str().contains('>'));
            self.inner.start(subs.map(started_again).collect()).await?;
        }
        Ok(purged)
    }

    async fn count_expired(&self, limit: usize) -> Result<Vec<ExpiredCount>, StoreError> {
        self.inner.count_expired(limit).await
    }

    async fn set_expiry(&self, tenant: &Tenant, key: &Key, expiry: Option<&Expiry>) -> Result<bool, StoreError> {
        let later = expiry.map(|expiry| self.counted(expiry));
        self.inner.set_expiry(tenant, key, later.as_ref()).await
    }

    async fn expire_ended(&self, request: &ExpireEnded) -> Result<EndedExpired, StoreError> {
        let expiry = self.counted(&request.expiry);
        self.inner.expire_ended(&ExpireEnded { expiry, ..request.clone() }).await
    }

    async fn expire_hosted(
        &self,
        definitions: &[DefinitionId],
        closed: &[(Tenant, Key)],
        delete_in: Duration,
    ) -> Result<u64, StoreError> {
        let mut closed = closed.to_vec();
        if self.has(StoreFlaw::ExpiresHostedOfEveryTenant) {
            let tenants = self.noted().tenants.clone();
            let keys: Vec<Key> = closed.iter().map(|(_, key)| key.clone()).collect();
            closed = tenants.iter().flat_map(|tenant| keys.iter().map(|key| (tenant.clone(), key.clone()))).collect();
        }
        self.inner.expire_hosted(definitions, &closed, delete_in).await
    }

    async fn unclosed(&self, epoch: u64, filter: &UnclosedFilter) -> Result<Unclosed, StoreError> {
        let newest = self.noted().maintenance;
        let epoch = if self.has(StoreFlaw::WalksUnderAnyEpoch) { newest } else { epoch };
        if self.has(StoreFlaw::ListsDatedSteps) {
            for dated in self.inner.expired(usize::MAX).await? {
                self.inner.set_expiry(&dated.tenant, &dated.key, None).await?;
            }
        }
        let unclosed = self.inner.unclosed(epoch, filter).await?;
        if self.has(StoreFlaw::WalksWithoutPause) && unclosed == Unclosed::default() {
            self.clock.advance(filter.interval);
            let again = self.inner.unclosed(epoch, filter).await;
            self.clock.go_back(filter.interval);
            return again;
        }
        Ok(unclosed)
    }

    async fn known(&self, tenant: &Tenant, keys: &[Key]) -> Result<Vec<KnownSaga>, StoreError> {
        let mut known = self.inner.known(tenant, keys).await?;
        if self.has(StoreFlaw::KnowsSagasOfOtherTenants) {
            let tenants = self.noted().tenants.clone();
            for other in tenants.iter().filter(|other| *other != tenant) {
                known.extend(self.inner.known(other, keys).await?);
            }
        }
        Ok(known)
    }

    async fn forget_dead_letters(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        if self.has(StoreFlaw::ForgetsOpenLetters) {
            self.discard_letters().await?;
            self.clock.advance(Duration::from_micros(1));
        }
        self.inner.forget_dead_letters(older_than, limit).await
    }

    async fn delete_expired_keys(&self, limit: usize) -> Result<u64, StoreError> {
        let limit = if self.has(StoreFlaw::DeletesKeysWithoutLimit) { usize::MAX } else { limit };
        self.inner.delete_expired_keys(limit).await
    }

    async fn forget_published(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        self.inner.forget_published(older_than, limit).await
    }
}

impl FaultyStore {
    /// The expiry as a flawed store counts it.
    fn counted(&self, expiry: &Expiry) -> Expiry {
        let later = if self.has(StoreFlaw::ExpiresFromNow) { LATER } else { Duration::ZERO };
        let (tombstone_in, delete_in) = (expiry.tombstone_in + later, expiry.delete_in + later);
        Expiry { tombstone_in, delete_in, hosts: expiry.hosts.clone() }
    }

    /// Dates sagas that are exempt and move.
    pub(super) async fn date_what_is_exempt(&self, changes: &[Changes]) -> Result<(), StoreError> {
        if !self.has(StoreFlaw::DatesExemptSagas) {
            return Ok(());
        }
        for advance in changes.iter().filter_map(|change| change.saga.as_ref()) {
            let row = self.inner.sagas_by_id(&[advance.id]).await?.pop();
            let Some(row) = row.filter(|row| row.ended_at.is_some() && advance.expiry.is_some()) else { continue };
            self.inner.set_expiry(&row.tenant, &row.key, advance.expiry.as_deref()).await?;
        }
        Ok(())
    }

    /// Counts the time of sagas that end from their start.
    pub(super) async fn expire_by_the_start(&self, changes: &mut [Changes]) -> Result<(), StoreError> {
        if !self.has(StoreFlaw::ExpiresByTheStart) {
            return Ok(());
        }
        for advance in changes.iter_mut().filter_map(|change| change.saga.as_mut()) {
            let row = self.inner.sagas_by_id(&[advance.id]).await?.pop();
            let (Some(row), Some(expiry)) = (row, &mut advance.expiry) else { continue };
            let now = saga_core::store::Work::now(&self.inner).await?;
            let age = Duration::from_micros((now.0 - row.started_at.0).unsigned_abs());
            expiry.tombstone_in = expiry.tombstone_in.saturating_sub(age);
            expiry.delete_in = expiry.delete_in.saturating_sub(age);
        }
        Ok(())
    }

    /// Deletes the tombstone whose key a saga is to get.
    pub(super) async fn free_key_of_tombstone(&self, saga: &NewSaga) -> Result<(), StoreError> {
        if !self.has(StoreFlaw::FreesKeysOfTombstones) {
            return Ok(());
        }
        let known = self.inner.saga(&saga.tenant, &saga.key).await?;
        if known.is_some_and(|known| known.is_tombstone()) {
            self.inner.set_expiry(&saga.tenant, &saga.key, Some(&Expiry::default())).await?;
            let epoch = self.noted().maintenance;
            let expired = self.inner.expired(usize::MAX).await?;
            self.inner.purge(epoch, &expired, LATER).await?;
        }
        Ok(())
    }

    /// The time of each saga that has ended is over.
    async fn take_time_away(&self, sagas: &mut Vec<ExpiredSaga>) -> Result<(), StoreError> {
        for saga in &*sagas {
            self.inner.set_expiry(&saga.tenant, &saga.key, Some(&Expiry::default())).await?;
        }
        let now = self.inner.expired(usize::MAX).await?;
        sagas.retain(|saga| now.iter().any(|now| now.id == saga.id));
        for saga in sagas {
            saga.version = now.iter().find(|now| now.id == saga.id).map_or(saga.version, |now| now.version);
        }
        Ok(())
    }

    async fn purge_sub_sagas(&self, epoch: u64, families: &[SagaWithSteps]) -> Result<(), StoreError> {
        let subs = || families.iter().map(|saga| &saga.saga).filter(|saga| saga.key.as_str().contains('>'));
        let has_outer = |key: &str| families.iter().any(|saga| key.starts_with(&format!("{}>", saga.saga.key)));
        for sub in subs().filter(|sub| has_outer(sub.key.as_str())) {
            self.inner.set_expiry(&sub.tenant, &sub.key, Some(&Expiry::default())).await?;
        }
        let mut expired = self.inner.expired(usize::MAX).await?;
        expired.retain(|expired| subs().any(|sub| sub.id == expired.id));
        let letters = self.discard_letters().await?;
        self.inner.purge(epoch, &expired, LATER).await?;
        self.inner.add_dead_letters(letters).await?;
        Ok(())
    }

    async fn discard_letters(&self) -> Result<Vec<NewDeadLetter>, StoreError> {
        let mut discarded = Vec::new();
        let tenants = self.noted().tenants.clone();
        for tenant in tenants {
            let filter = DeadLetterFilter { tenant, state: Some(DeadLetterState::Open), ..DeadLetterFilter::default() };
            for letter in self.inner.dead_letters(&filter).await? {
                self.inner.discard_dead_letter(&letter.letter.tenant, letter.letter.id, "a flaw").await?;
                discarded.push(letter.letter);
            }
        }
        Ok(discarded)
    }
}

fn again(saga: &SagaWithSteps, record: &StepRecord) -> NewRecord {
    NewRecord {
        saga: saga.saga.id,
        tenant: saga.saga.tenant.clone(),
        key: saga.saga.key.clone(),
        step: record.step.clone(),
        outcome: record.outcome,
        output: record.output.clone(),
        error: record.error.clone(),
        input: record.input.clone(),
        position: record.position,
        attempts: record.attempts,
        took: record.took,
    }
}

fn started_again(saga: &SagaWithSteps) -> NewSaga {
    let row = saga.saga.clone();
    NewSaga {
        id: row.id,
        tenant: row.tenant,
        key: row.key,
        definition: row.definition,
        digest: row.digest,
        input: row.input,
        input_hash: row.input_hash,
        status: row.status,
        state: row.state,
        commands: Vec::new(),
        expiry: None,
    }
}
