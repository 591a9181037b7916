//! Handles the claimed work rows of deadlines.

use std::sync::Arc;
use std::time::Duration;

use super::poller::Poller;
use crate::engine::admin::{AdminContext, AdminRuntime, end_overdue};
use crate::engine::commit::changes;
use crate::log;
use crate::store::{Postponed, SagaRow, Store, WorkRef};

/// The pause before a deadline that could not be applied is tried again.
const RETRY_IN: Duration = Duration::from_mins(1);

impl<S: Store> Poller<S> {
    /// Cancels a saga whose deadline has passed, unless it has reached its pivot.
    pub(crate) async fn deadline_passed(self: &Arc<Self>, work: WorkRef, row: &SagaRow) {
        let admin = AdminContext::of(AdminRuntime::new(&self.committer, &self.decider), &row.tenant);
        if let Err(error) = end_overdue(&admin, &row.key, work).await {
            log::warn!(tenant = row.tenant.as_str(), saga = %row.key, %error, "deadline not applied");
            // The saga may become readable later. Until then it must keep no worker busy.
            let error = Some(error.to_string());
            let postponed = Postponed { work, due_in: RETRY_IN, attempts: 0, in_doubt: false, error };
            let applied = self.committer.recorder.record(changes::postpone(postponed)).await;
            if applied.is_err() {
                self.committer.scheduler.release(&[work]).await;
            }
        }
    }
}
