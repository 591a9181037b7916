use std::time::Duration;

use async_trait::async_trait;
use saga_core::key::{Key, Tenant};
use saga_core::store::{
    DefinitionId, EndedExpired, ExpireEnded, ExpiredCount, ExpiredSaga, Expiry, MemberId, Purge, Purged, SagaId,
    SagaWithSteps, StoreError,
};

use super::{FaultyStore, StoreFlaw};

#[async_trait]
impl Purge for FaultyStore {
    async fn lease_maintenance(&self, owner: MemberId, ttl: Duration) -> Result<Option<u64>, StoreError> {
        self.inner.lease_maintenance(owner, ttl).await
    }

    async fn expired(&self, limit: usize) -> Result<Vec<ExpiredSaga>, StoreError> {
        self.inner.expired(limit).await
    }

    async fn whole_sagas(&self, sagas: &[SagaId]) -> Result<Vec<SagaWithSteps>, StoreError> {
        self.inner.whole_sagas(sagas).await
    }

    async fn purge(&self, epoch: u64, sagas: &[ExpiredSaga]) -> Result<Purged, StoreError> {
        self.inner.purge(epoch, sagas).await
    }

    async fn count_expired(&self, limit: usize) -> Result<Vec<ExpiredCount>, StoreError> {
        self.inner.count_expired(limit).await
    }

    async fn set_expiry(&self, tenant: &Tenant, key: &Key, expiry: Option<&Expiry>) -> Result<bool, StoreError> {
        self.inner.set_expiry(tenant, key, expiry).await
    }

    async fn expire_ended(&self, request: &ExpireEnded) -> Result<EndedExpired, StoreError> {
        self.inner.expire_ended(request).await
    }

    async fn expire_hosted(
        &self,
        definitions: &[DefinitionId],
        closed: &[(Tenant, Key)],
        delete_in: Duration,
    ) -> Result<u64, StoreError> {
        self.inner.expire_hosted(definitions, closed, delete_in).await
    }

    async fn forget_dead_letters(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
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
