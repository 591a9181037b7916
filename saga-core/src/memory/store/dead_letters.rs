//! Dead letters.

use async_trait::async_trait;

use crate::key::Tenant;
use crate::memory::MemoryStore;
use crate::store::{
    DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterState, DeadLetters, NewDeadLetter, StoreError, WorkId,
};

#[async_trait]
impl DeadLetters for MemoryStore {
    async fn add_dead_letters(&self, letters: Vec<NewDeadLetter>) -> Result<Vec<bool>, StoreError> {
        let mut letters = letters;
        self.writing("add_dead_letters", |data, now| {
            let letters = std::mem::take(&mut letters);
            Some(Ok(letters.into_iter().map(|letter| data.dead_letters.insert_open(letter, now)).collect()))
        })
        .await
    }

    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError> {
        self.reading("dead_letters", |data, _| data.dead_letters.list(filter)).await
    }

    async fn dead_letter(&self, tenant: &Tenant, id: DeadLetterId) -> Result<Option<DeadLetter>, StoreError> {
        self.reading("dead_letter", |data, _| data.dead_letters.get(tenant, id).cloned()).await
    }

    async fn replay_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        work: WorkId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        self.writing("replay_dead_letter", |data, now| {
            let Some(row) = data.dead_letters.of(tenant, id) else { return Some(Ok(None)) };
            let state = row.state;
            if let (DeadLetterState::Open, Some(message)) = (state, row.letter.message.clone()) {
                row.decide(DeadLetterState::Replayed, note, now);
                data.insert_message(work, message, None, now);
            }
            Some(Ok(Some(state)))
        })
        .await
    }

    async fn discard_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        self.writing("discard_dead_letter", |data, now| {
            let Some(row) = data.dead_letters.of(tenant, id) else { return Some(Ok(None)) };
            let state = row.state;
            if state == DeadLetterState::Open {
                row.decide(DeadLetterState::Discarded, note, now);
            }
            Some(Ok(Some(state)))
        })
        .await
    }
}
