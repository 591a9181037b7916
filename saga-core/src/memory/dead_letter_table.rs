//! The dead letters, by id.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::key::Tenant;
use crate::store::{DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterState, NewDeadLetter, Timestamp};

/// The dead letters, by id.
#[derive(Debug, Default)]
pub(super) struct DeadLetterTable {
    rows: BTreeMap<DeadLetterId, DeadLetter>,
}

impl DeadLetterTable {
    /// Inserts a letter, or counts it where one with its fingerprint is open; answers whether it is new.
    pub(super) fn insert_open(&mut self, letter: NewDeadLetter, now: Timestamp) -> bool {
        let is_same =
            |row: &&mut DeadLetter| row.state == DeadLetterState::Open && row.letter.fingerprint == letter.fingerprint;
        if let Some(open) = self.rows.values_mut().find(is_same) {
            open.seen += 1;
            return false;
        }
        self.rows.insert(letter.id, DeadLetter::open(letter, now));
        true
    }

    /// Inserts a letter that is discarded from the beginning.
    pub(super) fn insert_discarded(&mut self, letter: NewDeadLetter, note: &str, now: Timestamp) {
        let mut row = DeadLetter::open(letter, now);
        row.decide(DeadLetterState::Discarded, note, now);
        self.rows.insert(row.letter.id, row);
    }

    pub(super) fn of(&mut self, tenant: &Tenant, id: DeadLetterId) -> Option<&mut DeadLetter> {
        self.rows.get_mut(&id).filter(|row| row.letter.tenant == *tenant)
    }

    /// The letters that pass the filter.
    pub(super) fn list(&self, filter: &DeadLetterFilter) -> Vec<DeadLetter> {
        let from = filter.after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.rows.range((from, Bound::Unbounded)).map(|(_, row)| row);
        rows.filter(|row| passes(row, filter)).take(filter.limit).cloned().collect()
    }

    /// The letter of that id, if it belongs to that tenant.
    pub(super) fn get(&self, tenant: &Tenant, id: DeadLetterId) -> Option<&DeadLetter> {
        self.rows.get(&id).filter(|row| row.letter.tenant == *tenant)
    }
}

fn passes(row: &DeadLetter, filter: &DeadLetterFilter) -> bool {
    row.letter.tenant == filter.tenant
        && filter.state.is_none_or(|state| state == row.state)
        && filter.reason.is_none_or(|reason| reason == row.letter.reason)
}
