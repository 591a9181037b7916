//! Finds out whether a transaction fails because of the store or because of its steps.

use super::commit_failures::{Failures, OPERATION};
use super::entry::BatchEntry;
use super::worker::Transactions;
use crate::engine::instance::{WorkItem, refs};
use crate::log;
use crate::store::{Lease, RetryClass, Store, StoreErrorKind, TransactError, WorkRef};

/// After this many failures in a row, the store is asked whether it works for the same rows without the steps.
const FAILURES_MAX: u32 = 5;

impl<S: Store> BatchEntry<S> {
    /// Whether a handler of the entry has returned.
    pub(crate) fn has_run(&self) -> bool {
        self.attempted.is_some() || self.has_chained()
    }
}

impl<S: Store> Transactions<S> {
    /// Whether the store writes for the rows of these commands without the steps. Asked only after many failures in a row.
    pub(crate) async fn writes_without_steps(&self, commands: &[WorkItem<S>], failures: u32) -> bool {
        failures >= FAILURES_MAX && self.writes_for(&refs(commands)).await
    }

    /// Whether the steps make their transaction fail: the store wrote for the same rows before and after it.
    pub(crate) async fn is_of_steps(
        &self,
        members: &[BatchEntry<S>],
        error: &TransactError,
        failures: Failures,
    ) -> bool {
        if !failures.works_before || error.error.kind() == StoreErrorKind::Conflict {
            return false;
        }
        let rows: Vec<WorkRef> = members.iter().filter_map(BatchEntry::work).collect();
        let is_of_steps = error.error.class() != RetryClass::Unknown && self.writes_for(&rows).await;
        if is_of_steps {
            let (failures, error) = (failures.so_far + 1, &error.error);
            log::warn!(count = failures, %error, "step transaction fails repeatedly");
            self.ctx.health.store_works(OPERATION);
        }
        is_of_steps
    }

    async fn writes_for(&self, rows: &[WorkRef]) -> bool {
        let lease = Lease { owner: self.committer.scheduler.membership.member_id(), ttl: self.ctx.settings.lease_ttl };
        let renewed = self.ctx.store.renew(rows, lease).await;
        renewed.is_ok_and(|renewed| !renewed.is_empty() && renewed.into_iter().all(|renewed| renewed))
    }
}
