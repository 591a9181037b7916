//! The dead letters, by id.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::key::Tenant;
use crate::store::{DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterState, NewDeadLetter, Timestamp};

/// The dead letters, by id.
#[derive(Debug, Default)]
pub(in crate::memory) struct DeadLetterTable {
    rows: BTreeMap<DeadLetterId, DeadLetter>,
}

impl DeadLetterTable {
    /// Inserts a letter, or counts it where one with its fingerprint is open; answers whether it is new.
    pub(in crate::memory) fn insert_open(&mut self, letter: NewDeadLetter, now: Timestamp) -> bool {
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
    pub(in crate::memory) fn insert_discarded(&mut self, letter: NewDeadLetter, note: &str, now: Timestamp) {
        let mut row = DeadLetter::open(letter, now);
        row.decide(DeadLetterState::Discarded, note, now);
        self.rows.insert(row.letter.id, row);
    }

    /// The keys of the sagas that open letters name, in a tenant.
    pub(in crate::memory) fn sagas_named(&self, tenant: &Tenant) -> BTreeSet<&str> {
        let open = self.rows.values().filter(|row| row.state == DeadLetterState::Open && row.letter.tenant == *tenant);
        open.filter_map(|row| row.letter.saga_key()).collect()
    }

    /// Deletes letters that were decided before that time.
    pub(in crate::memory) fn forget(&mut self, decided_before: Timestamp, limit: usize) -> u64 {
        let is_old = |row: &&DeadLetter| {
            row.state != DeadLetterState::Open && row.decided_at.is_some_and(|at| at < decided_before)
        };
        let old: Vec<DeadLetterId> = self.rows.values().filter(is_old).map(|row| row.letter.id).take(limit).collect();
        for id in &old {
            self.rows.remove(id);
        }
        old.len() as u64
    }

    pub(in crate::memory) fn of(&mut self, tenant: &Tenant, id: DeadLetterId) -> Option<&mut DeadLetter> {
        self.rows.get_mut(&id).filter(|row| row.letter.tenant == *tenant)
    }

    /// The letters that pass the filter.
    pub(in crate::memory) fn list(&self, filter: &DeadLetterFilter) -> Vec<DeadLetter> {
        let from = filter.after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.rows.range((from, Bound::Unbounded)).map(|(_, row)| row);
        rows.filter(|row| passes(row, filter)).take(filter.limit).cloned().collect()
    }

    /// The letter of that id, if it belongs to that tenant.
    pub(in crate::memory) fn get(&self, tenant: &Tenant, id: DeadLetterId) -> Option<&DeadLetter> {
        self.rows.get(&id).filter(|row| row.letter.tenant == *tenant)
    }
}

fn passes(row: &DeadLetter, filter: &DeadLetterFilter) -> bool {
    row.letter.tenant == filter.tenant
        && filter.state.is_none_or(|state| state == row.state)
        && filter.reason.is_none_or(|reason| reason == row.letter.reason)
}
