use std::collections::BTreeMap;
use std::ops::Bound;

use async_trait::async_trait;

use super::MemoryStore;
use crate::key::Tenant;
use crate::store::{
    DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterState, DeadLetters, NewDeadLetter, StoreError, Timestamp,
    WorkId,
};

/// The dead letters, by id.
#[derive(Debug, Default)]
pub(super) struct Letters {
    rows: BTreeMap<DeadLetterId, DeadLetter>,
}

#[async_trait]
impl DeadLetters for MemoryStore {
    async fn bury(&self, letters: Vec<NewDeadLetter>) -> Result<Vec<bool>, StoreError> {
        let mut letters = letters;
        self.writing("bury", |data, now| {
            let letters = std::mem::take(&mut letters);
            Some(Ok(letters.into_iter().map(|letter| data.letters.bury(letter, now)).collect()))
        })
        .await
    }

    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError> {
        self.reading("dead_letters", |data, _| {
            let from = filter.after.map_or(Bound::Unbounded, Bound::Excluded);
            let rows = data.letters.rows.range((from, Bound::Unbounded)).map(|(_, row)| row);
            rows.filter(|row| passes(row, filter)).take(filter.limit).cloned().collect()
        })
        .await
    }

    async fn dead_letter(&self, tenant: &Tenant, id: DeadLetterId) -> Result<Option<DeadLetter>, StoreError> {
        self.reading("dead_letter", |data, _| {
            data.letters.rows.get(&id).filter(|row| row.letter.tenant == *tenant).cloned()
        })
        .await
    }

    async fn replay_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        work: WorkId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        self.writing("replay_letter", |data, now| {
            let Some(row) = data.letters.of(tenant, id) else { return Some(Ok(None)) };
            let state = row.state;
            if let (DeadLetterState::Open, Some(message)) = (state, row.letter.message.clone()) {
                row.decide(DeadLetterState::Replayed, note, now);
                data.insert_message(work, message, None, now);
            }
            Some(Ok(Some(state)))
        })
        .await
    }

    async fn discard_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        self.writing("discard_letter", |data, now| {
            let Some(row) = data.letters.of(tenant, id) else { return Some(Ok(None)) };
            let state = row.state;
            if state == DeadLetterState::Open {
                row.decide(DeadLetterState::Discarded, note, now);
            }
            Some(Ok(Some(state)))
        })
        .await
    }
}

impl Letters {
    /// Inserts a letter, or counts it where the same one is open; answers whether it is new.
    pub(super) fn bury(&mut self, letter: NewDeadLetter, now: Timestamp) -> bool {
        let is_same =
            |row: &&mut DeadLetter| row.state == DeadLetterState::Open && row.letter.fingerprint == letter.fingerprint;
        if let Some(open) = self.rows.values_mut().find(is_same) {
            open.seen += 1;
            return false;
        }
        let (id, state) = (letter.id, DeadLetterState::Open);
        self.rows.insert(id, DeadLetter { letter, seen: 1, buried_at: now, state, decided_at: None, note: None });
        true
    }

    /// Inserts a letter that was decided about before it was one.
    pub(super) fn keep_discarded(&mut self, letter: NewDeadLetter, note: &str, now: Timestamp) {
        let (id, state) = (letter.id, DeadLetterState::Open);
        let mut row = DeadLetter { letter, seen: 1, buried_at: now, state, decided_at: None, note: None };
        row.decide(DeadLetterState::Discarded, note, now);
        self.rows.insert(id, row);
    }

    fn of(&mut self, tenant: &Tenant, id: DeadLetterId) -> Option<&mut DeadLetter> {
        self.rows.get_mut(&id).filter(|row| row.letter.tenant == *tenant)
    }
}

impl DeadLetter {
    fn decide(&mut self, state: DeadLetterState, note: &str, now: Timestamp) {
        self.state = state;
        self.decided_at = Some(now);
        self.note = Some(note.to_owned());
    }
}

fn passes(row: &DeadLetter, filter: &DeadLetterFilter) -> bool {
    row.letter.tenant == filter.tenant
        && filter.state.is_none_or(|state| state == row.state)
        && filter.reason.is_none_or(|reason| reason == row.letter.reason)
}
