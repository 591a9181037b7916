//! Handles the claimed work rows of deadlines.

use std::sync::Arc;
use std::time::Duration;

use super::poller::Poller;
use crate::engine::admin::{AdminContext, AdminRuntime, end_overdue};
use crate::engine::commit::changes;
use crate::engine::context::RuntimeError;
use crate::log;
use crate::store::{Postponed, RetryClass, SagaRow, Store, WorkRef};

/// The pause before a deadline is tried again that could not be applied, since the saga cannot be read. It may become readable later.
/// Until then it must keep no worker busy.
const UNREADABLE_RETRY_IN: Duration = Duration::from_mins(1);

impl<S: Store> Poller<S> {
    /// Cancels a saga whose deadline has passed, unless it has reached its pivot.
    pub(crate) async fn deadline_passed(self: &Arc<Self>, work: WorkRef, row: &SagaRow) {
        let admin = AdminContext::of(AdminRuntime::new(&self.committer, &self.decider), &row.tenant);
        // The row is tried again after `poll_interval` anyway.
        let admin = admin.without_lock_retries();
        if let Err(error) = end_overdue(&admin, &row.key, work).await {
            log::warn!(tenant = row.tenant.as_str(), saga = %row.key, %error, "deadline not applied");
            let due_in = self.retry_deadline_in(&error);
            let error = Some(error.to_string());
            let postponed = Postponed { work, due_in, attempts: 0, in_doubt: false, error };
            match self.committer.recorder.record(changes::postpone(postponed)).await {
                Ok(_) => self.committer.scheduler.announce_work(due_in),
                Err(_) => self.committer.scheduler.release(&[work]).await,
            }
        }
    }

    /// What met a lock or a broken connection is tried again soon: the saga may reach its pivot in the meantime.
    fn retry_deadline_in(&self, error: &RuntimeError) -> Duration {
        match error {
            RuntimeError::Store(error) if error.class() != RetryClass::Permanent => self.ctx.settings.poll_interval,
            _ => UNREADABLE_RETRY_IN,
        }
    }
}
