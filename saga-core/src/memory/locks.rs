//! The locks that open transactions hold.

use std::collections::BTreeSet;

use super::hashing::QuickMap;
use crate::key::{Key, StepId, Tenant};
use crate::store::{SagaId, WorkId};

/// What messages are sent in order by: the tenant, the aggregate type and the aggregate id.
pub(super) type OrderingKey = (Tenant, String, String);

/// A transaction that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TxId(pub(super) u64);

/// What a transaction can hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Lock {
    Work(WorkId),
    Record(Tenant, Key, StepId),
    Saga(SagaId),
    /// The key of a saga that is being started.
    Key(Tenant, Key),
    /// The counter of an ordering key.
    Counter(OrderingKey),
    /// A row of the business table.
    Row(String),
}

/// Who holds what, and who waits.
#[derive(Debug, Default)]
pub(super) struct Locks {
    held: QuickMap<Lock, TxId>,
    /// What each transaction took, also what it released since.
    taken: QuickMap<TxId, Vec<Lock>>,
    waiting: BTreeSet<TxId>,
    opened: u64,
}

impl Locks {
    pub(super) fn open(&mut self) -> TxId {
        self.opened += 1;
        TxId(self.opened)
    }

    /// Whoever holds it, if it is not `me`.
    pub(super) fn holder(&self, lock: &Lock, me: Option<TxId>) -> Option<TxId> {
        self.held.get(lock).copied().filter(|holder| Some(*holder) != me)
    }

    pub(super) fn take(&mut self, lock: Lock, me: TxId) {
        if self.held.insert(lock.clone(), me) != Some(me) {
            self.taken.entry(me).or_default().push(lock);
        }
    }

    pub(super) fn release(&mut self, lock: &Lock) {
        self.held.remove(lock);
    }

    pub(super) fn release_all(&mut self, me: TxId) {
        for lock in self.taken.remove(&me).unwrap_or_default() {
            if self.held.get(&lock) == Some(&me) {
                self.held.remove(&lock);
            }
        }
        self.waiting.remove(&me);
    }

    pub(super) fn wait(&mut self, me: TxId) {
        self.waiting.insert(me);
    }

    pub(super) fn go_on(&mut self, me: TxId) {
        self.waiting.remove(&me);
    }

    /// Whether waiting for this holder could last for ever, since it waits itself.
    pub(super) fn is_waiting(&self, holder: TxId) -> bool {
        self.waiting.contains(&holder)
    }
}
