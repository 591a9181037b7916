//! Dates of ended sagas, and what is deleted with them.

use super::data::Data;
use super::expiry::Dated;
use crate::key::{Key, Tenant};
use crate::store::{Expiry, SagaId, Timestamp};

impl Data {
    /// Dates a saga that moved: by the expiry if it has ended, and not at all otherwise.
    pub(in crate::memory) fn date(&mut self, id: SagaId, expiry: Option<&Expiry>, now: Timestamp) {
        let Some(saga) = self.sagas.get(&id) else { return };
        let ended_at = saga.row.ended_at;
        let dated = match (ended_at, expiry) {
            (Some(_), Some(expiry)) if !saga.row.is_tombstone() => Some(Dated::full(expiry, now)),
            _ => None,
        };
        self.set_dated(id, dated);
    }

    /// Dates an ended saga by its end; false if there is none.
    pub(in crate::memory) fn redate(&mut self, id: SagaId, expiry: Option<&Expiry>) -> bool {
        let Some(saga) = self.sagas.get(&id) else { return false };
        let Some(ended_at) = saga.row.ended_at else { return false };
        let is_tombstone = saga.row.is_tombstone();
        let date = |expiry| {
            if is_tombstone { Dated::tombstone(expiry, ended_at) } else { Dated::full(expiry, ended_at) }
        };
        self.set_dated(id, expiry.map(date));
        true
    }

    pub(in crate::memory) fn set_dated(&mut self, id: SagaId, dated: Option<Dated>) {
        let Some(saga) = self.sagas.get_mut(&id) else { return };
        if let Some(old) = &saga.dated {
            self.expiring.remove(&(old.at, id));
        }
        self.expiring.extend(dated.iter().map(|dated| (dated.at, id)));
        saga.dated = dated;
    }

    /// A saga and its sub-sagas, in the order of their keys.
    pub(in crate::memory) fn family(&self, tenant: &Tenant, key: &Key) -> Vec<SagaId> {
        let first = key.hosted("");
        let below = self.below.range((tenant.clone(), first.clone())..);
        let below = below.take_while(|((of, key), _)| of == tenant && key.as_str().starts_with(first.as_str()));
        let own = self.keys.get(&(tenant.clone(), key.clone()));
        own.into_iter().chain(below.map(|(_, id)| id)).copied().collect()
    }

    /// Deletes a saga with its records and its history.
    pub(in crate::memory) fn delete_saga(&mut self, id: SagaId) {
        self.set_dated(id, None);
        let Some(saga) = self.sagas.remove(&id) else { return };
        let key = (saga.row.tenant, saga.row.key);
        self.keys.remove(&key);
        self.records.remove(&key);
        self.below.remove(&key);
    }
}
