use std::time::Duration;

use saga_core::env::BoxFuture;
use saga_core::memory::MemoryConn;
use saga_core::store::{Changes, HandlerVerdict, LocksOfClaims, MovedSaga, TakenLock, TransactionBody};

use super::{FaultyStore, StoreFlaw};

/// Stands between a store and a body, and twists what they say.
pub(super) struct FaultyBody {
    pub(super) body: Box<dyn TransactionBody<MemoryConn>>,
    pub(super) store: FaultyStore,
    /// What is said of the locks of the claims, in the place of what is so.
    pub(super) made_up: LocksOfClaims,
}

impl TransactionBody<MemoryConn> for FaultyBody {
    fn granted(&mut self, granted: &[bool]) {
        self.body.granted(granted);
        for (index, taken) in self.made_up.clone() {
            self.body.locked(index, taken);
        }
        if self.store.has(StoreFlaw::WritesWithoutClaims) && !granted.contains(&true) {
            let changes = self.body.changes();
            self.store.noted().stashed = changes;
        }
    }

    fn locked(&mut self, index: usize, mut taken: Vec<Option<TakenLock>>) {
        for taken in taken.iter_mut().flatten() {
            if self.store.has(StoreFlaw::RepeatsTokens) {
                taken.tokens.fill(1);
            }
            if self.store.has(StoreFlaw::GivesEachClaimItsToken) {
                let place = u64::try_from(index).unwrap_or_default();
                taken.tokens.iter_mut().for_each(|token| *token += place);
            }
            taken.is_stored &= !self.store.has(StoreFlaw::ForgetsWhichLocksAreStored);
        }
        self.body.locked(index, taken);
    }

    fn time_limit(&self, index: usize) -> Duration {
        self.body.time_limit(index)
    }

    fn run<'a>(&'a mut self, index: usize, conn: &'a mut MemoryConn) -> BoxFuture<'a, HandlerVerdict> {
        let spoilt = match self.store.flaw {
            Some(StoreFlaw::KeepsRolledBack) => Some(HandlerVerdict::RollBack),
            Some(StoreFlaw::KeepsAbandoned) => Some(HandlerVerdict::Abandon),
            Some(StoreFlaw::KeepsConflicts) => Some(HandlerVerdict::Conflict),
            Some(StoreFlaw::StopsAfterOneStep) => Some(HandlerVerdict::KeepAndContinue),
            _ => None,
        };
        let keeps_what_went_back = self.store.has(StoreFlaw::KeepsUndone);
        let run = self.body.run(index, conn);
        Box::pin(async move {
            let verdict = run.await;
            match verdict {
                HandlerVerdict::UndoAndContinue if keeps_what_went_back => HandlerVerdict::KeepAndContinue,
                verdict if Some(verdict) == spoilt => HandlerVerdict::Keep,
                verdict => verdict,
            }
        })
    }

    fn has_run(&self, index: usize) -> bool {
        !self.store.has(StoreFlaw::RunsGroupedClaims) && self.body.has_run(index)
    }

    fn needs_savepoint(&mut self, index: usize) -> bool {
        self.body.needs_savepoint(index) || self.store.has(StoreFlaw::SetsEverySavepoint)
    }

    fn changes(&mut self) -> Vec<Changes> {
        let changes = self.body.changes();
        if self.store.has(StoreFlaw::CommitsTwice) {
            self.store.noted().stashed = changes;
            return Vec::new();
        }
        self.store.twist(changes)
    }

    fn decide_again(&mut self, mut moved: Vec<MovedSaga>) -> Option<Vec<Changes>> {
        if self.store.has(StoreFlaw::ForgetsOtherRecords) {
            for moved in &mut moved {
                moved.records.clear();
            }
        }
        let changes = self.store.twist(self.body.decide_again(moved.clone())?);
        if !self.store.has(StoreFlaw::SkipsMovedSagas) {
            return Some(changes);
        }
        let has_moved = |change: &Changes| {
            change.saga.as_ref().is_some_and(|advance| moved.iter().any(|moved| moved.saga.id == advance.id))
        };
        let leave = |change: Changes| if has_moved(&change) { Changes { saga: None, ..change } } else { change };
        Some(changes.into_iter().map(leave).collect())
    }
}
