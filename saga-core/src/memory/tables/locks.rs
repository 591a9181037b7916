//! The locks that open transactions hold.

use std::collections::BTreeSet;

use super::hashing::QuickMap;
use crate::key::{Key, StepId, Tenant};
use crate::store::{Entity, IdempotencyKey, SagaId, WorkId};

/// An ordering key: tenant, aggregate type and aggregate id.
pub(in crate::memory) type OrderingKey = (Tenant, String, String);

/// An open transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::memory) struct TxId(pub(in crate::memory) u64);

/// Something that a transaction can lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::memory) enum Lock {
    Work(WorkId),
    Record(Tenant, Key, StepId),
    Saga(SagaId),
    /// The key of a saga that is being started.
    Key(Tenant, Key),
    /// The counter of an ordering key.
    Counter(OrderingKey),
    /// The key of a request.
    Request(IdempotencyKey),
    /// What a step locks.
    Entity(Tenant, Entity),
    /// A row of the business table.
    Row(String),
}

/// The locks and their holders, and the transactions that wait.
#[derive(Debug, Default)]
pub(in crate::memory) struct Locks {
    held: QuickMap<Lock, TxId>,
    /// The locks that each transaction took, also those that it has released.
    taken: QuickMap<TxId, Vec<Lock>>,
    waiting: BTreeSet<TxId>,
    opened: u64,
}

impl Locks {
    pub(in crate::memory) fn open(&mut self) -> TxId {
        self.opened += 1;
        TxId(self.opened)
    }

    /// The transaction that holds the lock, if it is not `me`.
    pub(in crate::memory) fn holder(&self, lock: &Lock, me: Option<TxId>) -> Option<TxId> {
        self.held.get(lock).copied().filter(|holder| Some(*holder) != me)
    }

    pub(in crate::memory) fn take(&mut self, lock: Lock, me: TxId) {
        if self.held.insert(lock.clone(), me) != Some(me) {
            self.taken.entry(me).or_default().push(lock);
        }
    }

    pub(in crate::memory) fn release(&mut self, lock: &Lock) {
        self.held.remove(lock);
    }

    pub(in crate::memory) fn release_all(&mut self, me: TxId) {
        for lock in self.taken.remove(&me).unwrap_or_default() {
            if self.held.get(&lock) == Some(&me) {
                self.held.remove(&lock);
            }
        }
        self.waiting.remove(&me);
    }

    pub(in crate::memory) fn wait(&mut self, me: TxId) {
        self.waiting.insert(me);
    }

    pub(in crate::memory) fn stop_waiting(&mut self, me: TxId) {
        self.waiting.remove(&me);
    }

    /// Whether this holder waits itself, so that waiting for it could be a deadlock.
    pub(in crate::memory) fn is_waiting(&self, holder: TxId) -> bool {
        self.waiting.contains(&holder)
    }
}
