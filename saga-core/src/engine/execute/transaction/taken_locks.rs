//! The locks of steps that the transaction itself takes.

use std::sync::Arc;

use crate::engine::instance::{WorkItem, lock_of};
use crate::step::LockedEntity;
use crate::store::{Entity, KeptLock, LockRequest, Store, TakenLock, Unlock, WantedLock};

/// The locks that a transaction was to take for a saga, and those that it took.
#[derive(Debug, Default)]
pub(crate) struct TakenLocks {
    wanted: Vec<Arc<WantedLock>>,
    taken: Vec<Option<TakenLock>>,
}

impl TakenLocks {
    pub(crate) fn new(wanted: Vec<Arc<WantedLock>>) -> Self {
        Self { wanted, taken: Vec::new() }
    }

    /// What the claim says.
    pub(crate) fn wanted(&self) -> Vec<Arc<WantedLock>> {
        self.wanted.clone()
    }

    pub(crate) fn are_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    pub(crate) fn set(&mut self, taken: Vec<Option<TakenLock>>) {
        self.taken = taken;
    }

    /// Whether the claim was not granted since others have what its step locks, or wait for it.
    pub(crate) fn lack_required(&self) -> bool {
        self.pairs().any(|(wanted, taken)| wanted.is_required && taken.is_none())
    }

    /// Whether the transaction waited for another one that had one of the entities.
    pub(crate) fn have_waited(&self) -> bool {
        self.taken.iter().flatten().any(|taken| taken.has_waited)
    }

    /// What the transaction has for the step that was claimed.
    pub(crate) fn of_claimed(&self) -> Option<Vec<LockedEntity>> {
        let (wanted, taken) = self.pairs().find(|(wanted, _)| wanted.is_required)?;
        Some(locked(&wanted.request, taken?))
    }

    /// What the transaction has for a command that would follow; empty if the step has no lock. Nothing if the transaction does not
    /// have its lock.
    pub(crate) fn of_next<S: Store>(&self, next: &WorkItem<S>) -> Option<Vec<LockedEntity>> {
        if lock_of(next).is_none() {
            return Some(Vec::new());
        }
        if self.wanted.is_empty() || next.is_undo() {
            return None;
        }
        // Its entities were named from the input of the saga, which is the input of each step that may follow.
        let step = next.saga.doing(next.step_index());
        let (wanted, taken) = self.pairs().find(|(wanted, _)| wanted.request.name == step.as_str())?;
        Some(locked(&wanted.request, taken?))
    }

    /// The semantic locks that outlast the transaction: those that it took, and that do not end with its changes.
    pub(crate) fn kept(&self, unlocked: &[Unlock]) -> Vec<KeptLock> {
        let is_kept = |wanted: &WantedLock| {
            !wanted.request.is_of_step() && !unlocked.iter().any(|unlock| is_end_of(unlock, &wanted.request))
        };
        let taken = self.wanted.iter().zip(&self.taken).filter(|(wanted, _)| is_kept(wanted));
        let taken = taken.filter_map(|(wanted, taken)| Some((wanted, taken.as_ref().filter(|of| !of.is_stored)?)));
        taken.map(|(wanted, of)| KeptLock { wanted: Arc::clone(wanted), tokens: of.tokens.clone() }).collect()
    }

    /// Whether what ends are only locks that end with the transaction, so that no change has to end them. `starts` is whether the
    /// transaction starts the saga: then the saga has no other locks.
    pub(crate) fn end_by_themselves(&self, unlock: &Unlock, starts: bool) -> bool {
        let is_single = matches!(unlock, Unlock::Lock(..));
        let is_taken = |taken: Option<&TakenLock>| taken.is_some_and(|taken| !taken.is_stored);
        (is_single || starts)
            && self.pairs().any(|(wanted, taken)| is_end_of(unlock, &wanted.request) && is_taken(taken))
    }

    fn pairs(&self) -> impl Iterator<Item = (&WantedLock, Option<&TakenLock>)> {
        self.wanted
            .iter()
            .enumerate()
            .map(|(place, wanted)| (&**wanted, self.taken.get(place).and_then(Option::as_ref)))
    }
}

/// Whether the request, or the lock, ends with that.
fn is_end_of(unlock: &Unlock, request: &LockRequest) -> bool {
    match unlock {
        Unlock::Owner(tenant, owner) => (tenant, owner) == (&request.tenant, &request.owner),
        Unlock::Lock(_, saga, name) => (*saga, name) == (request.saga, &request.name),
    }
}

/// The entities as the step named them, with their tokens.
fn locked(request: &LockRequest, taken: &TakenLock) -> Vec<LockedEntity> {
    let entities = request.entities.iter().map(|entity: &Entity| entity.named().0);
    entities.zip(&taken.tokens).map(|(entity, token)| LockedEntity { entity, token: *token }).collect()
}
