use std::collections::BTreeMap;
use std::ops::Bound;

use async_trait::async_trait;

use super::MemoryStore;
use crate::key::Tenant;
use crate::store::{
    DeadLetter, DeadLetters, LetterFilter, LetterId, LetterState, NewLetter, StoreError, Timestamp, WorkId,
};

/// The dead letters, by id.
#[derive(Debug, Default)]
pub(super) struct Letters {
    rows: BTreeMap<LetterId, DeadLetter>,
}

#[async_trait]
impl DeadLetters for MemoryStore {
    async fn bury(&self, letters: Vec<NewLetter>) -> Result<Vec<bool>, StoreError> {
        let mut letters = letters;
        self.writing("bury", |data, now| {
            let letters = std::mem::take(&mut letters);
            Some(Ok(letters.into_iter().map(|letter| data.letters.bury(letter, now)).collect()))
        })
        .await
    }

    async fn dead_letters(&self, filter: &LetterFilter) -> Result<Vec<DeadLetter>, StoreError> {
        self.reading("dead_letters", |data, _| {
            let from = filter.after.map_or(Bound::Unbounded, Bound::Excluded);
            let rows = data.letters.rows.range((from, Bound::Unbounded)).map(|(_, row)| row);
            rows.filter(|row| passes(row, filter)).take(filter.limit).cloned().collect()
        })
        .await
    }

    async fn dead_letter(&self, tenant: &Tenant, id: LetterId) -> Result<Option<DeadLetter>, StoreError> {
        self.reading("dead_letter", |data, _| {
            data.letters.rows.get(&id).filter(|row| row.letter.tenant == *tenant).cloned()
        })
        .await
    }

    async fn replay_letter(
        &self,
        tenant: &Tenant,
        id: LetterId,
        work: WorkId,
        note: &str,
    ) -> Result<Option<LetterState>, StoreError> {
        self.writing("replay_letter", |data, now| {
            let Some(row) = data.letters.of(tenant, id) else { return Some(Ok(None)) };
            let state = row.state;
            if let (LetterState::Open, Some(message)) = (state, row.letter.message.clone()) {
                row.decide(LetterState::Replayed, note, now);
                data.insert_message(work, message, None, now);
            }
            Some(Ok(Some(state)))
        })
        .await
    }

    async fn discard_letter(
        &self,
        tenant: &Tenant,
        id: LetterId,
        note: &str,
    ) -> Result<Option<LetterState>, StoreError> {
        self.writing("discard_letter", |data, now| {
            let Some(row) = data.letters.of(tenant, id) else { return Some(Ok(None)) };
            let state = row.state;
            if state == LetterState::Open {
                row.decide(LetterState::Discarded, note, now);
            }
            Some(Ok(Some(state)))
        })
        .await
    }
}

impl Letters {
    /// Inserts a letter, or counts it where the same one is open; answers whether it is new.
    pub(super) fn bury(&mut self, letter: NewLetter, now: Timestamp) -> bool {
        let is_same =
            |row: &&mut DeadLetter| row.state == LetterState::Open && row.letter.fingerprint == letter.fingerprint;
        if let Some(open) = self.rows.values_mut().find(is_same) {
            open.seen += 1;
            return false;
        }
        let (id, state) = (letter.id, LetterState::Open);
        self.rows.insert(id, DeadLetter { letter, seen: 1, buried_at: now, state, decided_at: None, note: None });
        true
    }

    /// Inserts a letter that was decided about before it was one.
    pub(super) fn keep_discarded(&mut self, letter: NewLetter, note: &str, now: Timestamp) {
        let (id, state) = (letter.id, LetterState::Open);
        let mut row = DeadLetter { letter, seen: 1, buried_at: now, state, decided_at: None, note: None };
        row.decide(LetterState::Discarded, note, now);
        self.rows.insert(id, row);
    }

    fn of(&mut self, tenant: &Tenant, id: LetterId) -> Option<&mut DeadLetter> {
        self.rows.get_mut(&id).filter(|row| row.letter.tenant == *tenant)
    }
}

impl DeadLetter {
    fn decide(&mut self, state: LetterState, note: &str, now: Timestamp) {
        self.state = state;
        self.decided_at = Some(now);
        self.note = Some(note.to_owned());
    }
}

fn passes(row: &DeadLetter, filter: &LetterFilter) -> bool {
    row.letter.tenant == filter.tenant
        && filter.state.is_none_or(|state| state == row.state)
        && filter.reason.is_none_or(|reason| reason == row.letter.reason)
}
