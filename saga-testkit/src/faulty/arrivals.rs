use std::time::Duration;

use async_trait::async_trait;
use saga_core::key::Tenant;
use saga_core::store::{
    ClaimedMessages, DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterState, DeadLetters, Inbox, Lease,
    NewDeadLetter, NewReceived, ReceivedBatch, StoreError, WorkId,
};

use super::{FaultyStore, StoreFlaw};

#[async_trait]
impl Inbox for FaultyStore {
    async fn receive(&self, messages: Vec<NewReceived>) -> Result<ReceivedBatch, StoreError> {
        let count = messages.len();
        let mut messages = messages;
        if self.has(StoreFlaw::KeepsTheFirstOnly) {
            messages.truncate(1);
        }
        let mut receipt = self.inner.receive(messages).await?;
        receipt.new.resize(count, true);
        if self.has(StoreFlaw::ReceivesTwice) {
            receipt.new.fill(true);
        }
        Ok(receipt)
    }

    async fn claim_received(&self, lease: Lease, limit: usize) -> Result<ClaimedMessages, StoreError> {
        let limit = if self.has(StoreFlaw::ClaimsEveryMessage) { usize::MAX } else { limit };
        self.inner.claim_received(self.revived_lease(lease), limit).await
    }

    async fn forget_received(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        let older_than = if self.has(StoreFlaw::ForgetsYoungIds) { Duration::ZERO } else { older_than };
        self.inner.forget_received(older_than, limit).await
    }
}

#[async_trait]
impl DeadLetters for FaultyStore {
    async fn add_dead_letters(&self, letters: Vec<NewDeadLetter>) -> Result<Vec<bool>, StoreError> {
        let mut letters = letters;
        for letter in &mut letters {
            self.noted().tenants.insert(letter.tenant.clone());
            if self.has(StoreFlaw::LosesDeadLetterHeaders) {
                letter.headers.clear();
            }
            if self.has(StoreFlaw::DuplicatesDeadLetters) {
                letter.fingerprint[..8].copy_from_slice(&letter.id.0.to_be_bytes());
            }
        }
        self.inner.add_dead_letters(letters).await
    }

    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError> {
        let mut filter = filter.clone();
        if self.has(StoreFlaw::ListsDecidedDeadLetters) {
            filter.state = None;
        }
        self.inner.dead_letters(&filter).await
    }

    async fn dead_letter(&self, tenant: &Tenant, id: DeadLetterId) -> Result<Option<DeadLetter>, StoreError> {
        let mut letter = self.inner.dead_letter(tenant, id).await?;
        let newest = self.noted().notes.get(&id).cloned();
        if let (true, Some(letter), Some(note)) = (self.has(StoreFlaw::RevisesDecisions), &mut letter, newest) {
            letter.note = Some(note);
        }
        Ok(letter)
    }

    async fn replay_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        work: WorkId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        self.noted().notes.insert(id, note.to_owned());
        if self.has(StoreFlaw::ReplaysNothing) {
            return self.inner.discard_dead_letter(tenant, id, note).await;
        }
        self.inner.replay_dead_letter(tenant, id, work, note).await
    }

    async fn discard_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        self.noted().notes.insert(id, note.to_owned());
        if self.has(StoreFlaw::KeepsDiscardedOpen) {
            return Ok(Some(DeadLetterState::Open));
        }
        self.inner.discard_dead_letter(tenant, id, note).await
    }
}
