//! What is stored and cannot be read: a saga gets stuck, and a row of work is left to its lease.

use std::sync::Arc;

use super::changes;
use super::committer::Committer;
use crate::engine::outcome::Outcome;
use crate::log;
use crate::store::{Changes, HistoryEntry, HistoryKind, Miss, SagaRow, Store, UnreadableWork, WorkRef};

/// Says which claimed rows cannot be read. They are claimed again when their leases end: perhaps by a newer version.
pub(crate) fn log_unreadable_work(rows: &[UnreadableWork]) {
    for UnreadableWork { work, problem } in rows {
        log::error!(work_id = work.0, error = problem, "work unreadable");
    }
}

impl<S: Store> Committer<S> {
    /// Blocks a saga whose stored state cannot be read: this is no rejection by a step, so the saga needs an
    /// operator.
    pub(crate) async fn block_unreadable(self: &Arc<Self>, row: &SagaRow, problem: &str, work: Option<WorkRef>) {
        let (tenant, saga, definition) = (row.tenant.as_str(), &row.key, &row.definition);
        log::error!(tenant, %saga, %definition, error = problem, "saga unreadable");
        let changes = Changes {
            history: vec![HistoryEntry {
                saga: row.id,
                step: None,
                kind: HistoryKind::Stuck,
                attempt: 0,
                detail: problem.to_owned(),
            }],
            ..changes::block_saga(row, work)
        };
        match self.recorder.record(changes).await {
            Ok(Ok(())) => {
                let reason = problem.to_owned();
                self.waiters.tell(row.id, Some(Outcome::Stuck { step: String::new(), reason }));
            }
            Ok(Err(Miss::Work(_))) => {}
            Ok(Err(_)) | Err(_) => self.scheduler.release(&work.into_iter().collect::<Vec<_>>()).await,
        }
    }
}
