use std::time::Duration;

use async_trait::async_trait;
use saga_core::Tenant;
use saga_core::store::{
    ClaimedMessages, DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterState, DeadLetters, Inbox, Lease,
    NewDeadLetter, NewReceived, ReceivedBatch, Store, StoreError, WorkId,
};

use super::Explored;
use super::store::slower_lease;

#[async_trait]
impl<S: Store> Inbox for Explored<S> {
    async fn receive(&self, mut messages: Vec<NewReceived>) -> Result<ReceivedBatch, StoreError> {
        for received in &mut messages {
            received.lease = received.lease.map(slower_lease);
        }
        self.through(self.inner.receive(messages)).await
    }

    async fn claim_received(&self, lease: Lease, limit: usize) -> Result<ClaimedMessages, StoreError> {
        self.through(self.inner.claim_received(slower_lease(lease), limit)).await
    }

    async fn forget_received(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        self.through(self.inner.forget_received(older_than, limit)).await
    }
}

#[async_trait]
impl<S: Store> DeadLetters for Explored<S> {
    async fn add_dead_letters(&self, letters: Vec<NewDeadLetter>) -> Result<Vec<bool>, StoreError> {
        self.through(self.inner.add_dead_letters(letters)).await
    }

    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError> {
        self.through(self.inner.dead_letters(filter)).await
    }

    async fn dead_letter(&self, tenant: &Tenant, id: DeadLetterId) -> Result<Option<DeadLetter>, StoreError> {
        self.through(self.inner.dead_letter(tenant, id)).await
    }

    async fn replay_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        work: WorkId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        self.through(self.inner.replay_dead_letter(tenant, id, work, note)).await
    }

    async fn discard_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        self.through(self.inner.discard_dead_letter(tenant, id, note)).await
    }
}
