//! Claimed rows of deadlines.

use std::sync::Arc;
use std::time::Duration;

use super::poller::Poller;
use crate::engine::admin::{AdminContext, AdminRuntime, end_overdue};
use crate::engine::commit::changes;
use crate::log;
use crate::store::{Postponed, SagaRow, Store, WorkRef};

/// When a deadline is looked at again whose saga could not be called off.
const LOOK_AGAIN_IN: Duration = Duration::from_mins(1);

impl<S: Store> Poller<S> {
    /// The row of a saga's deadline is claimed: the saga is called off, unless that came too late.
    pub(crate) async fn deadline_passed(self: &Arc<Self>, work: WorkRef, row: &SagaRow) {
        let admin = AdminContext::of(AdminRuntime::new(&self.committer, &self.decider), &row.tenant);
        if let Err(error) = end_overdue(&admin, &row.key, work).await {
            log::warn!(tenant = row.tenant.as_str(), saga = %row.key, %error, "deadline not applied");
            // A saga that cannot be read now may be readable later, and no worker must be kept busy with it until
            // then.
            let error = Some(error.to_string());
            let postponed = Postponed { work, due_in: LOOK_AGAIN_IN, attempts: 0, in_doubt: false, error };
            let applied = self.committer.recorder.record(changes::postpone(postponed)).await;
            if applied.is_err() {
                self.committer.scheduler.release(&[work]).await;
            }
        }
    }
}
