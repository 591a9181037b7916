//! Group commit on PostgreSQL: operations of many callers share transactions.
//!
//! While one transaction is under way, the operations that come wait together for the next one. Such a transaction waits for
//! no other: an operation on a resource that another process has locked is left out, and waits in a lane for these resources,
//! again together with all others like it. There an operation also goes that lacks units, so that holds that are over are
//! ended first.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::lanes::{Answer, Lane, Lanes, Running, Waiter};
use super::perform::{SWEEP, is_for_lack_of_units};
use super::shared::{Decided, Shared, Verdict};
use super::task::Task;
use super::transactions::Transactions;
use super::work::Work as _;
#[cfg(feature = "redis")]
use super::work::WorkError;
use crate::ReservationsError;

/// How often an operation begins again when the tokio runtime has ended that worked for it. Its key finds what it did.
const RUNTIMES_MAX: usize = 16;

/// Operations that share transactions. A clone shares with it.
#[derive(Debug, Clone)]
pub(super) struct Group {
    transactions: Transactions,
    lanes: Lanes,
}

#[derive(Debug, thiserror::Error)]
#[error("the tokio runtime that worked for it has ended")]
struct RuntimeEnded;

impl Group {
    pub(super) fn on(transactions: Transactions) -> Self {
        Self { transactions, lanes: Lanes::default() }
    }

    pub(super) async fn perform(&self, task: Task) -> Answer {
        for _ in 0..RUNTIMES_MAX {
            let (answer, answered) = oneshot::channel();
            self.enter(Lane::new(), Waiter { task: task.clone(), answer });
            if let Ok(answer) = answered.await {
                return answer;
            }
        }
        Err(ReservationsError::unavailable(Shared::OPERATION, RuntimeEnded))
    }

    /// Puts an operation into a lane, and begins to work there if no task does.
    fn enter(&self, lane: Lane, waiter: Waiter) {
        let Some(mut running) = self.lanes.enter(lane, waiter) else { return };
        let group = self.clone();
        tokio::spawn(async move {
            loop {
                let waiters = running.next();
                if waiters.is_empty() {
                    break;
                }
                group.commit(&running, waiters).await;
            }
        });
    }

    /// Carries these operations out in one transaction.
    async fn commit(&self, running: &Running, waiters: Vec<Waiter>) {
        let is_patient = running.is_patient();
        let tasks: Arc<[Task]> = waiters.iter().map(|waiter| waiter.task.clone()).collect();
        let shared = || Shared { tasks: Arc::clone(&tasks), is_patient };
        match self.transactions.run(shared).await {
            Ok(outcomes) => {
                // Where it was looked for all of them, there is no hold left that is over.
                let may_be_more = !is_patient || outcomes.overdue == SWEEP;
                for (waiter, decided) in waiters.into_iter().zip(outcomes.decided) {
                    self.pass_on(waiter, decided, may_be_more);
                }
            }
            Err(error) => {
                let error = Arc::new(error);
                for waiter in waiters {
                    let unavailable = ReservationsError::unavailable(Shared::OPERATION, Arc::clone(&error));
                    // The caller may be gone.
                    _ = waiter.answer.send(Err(unavailable));
                }
            }
        }
    }

    /// Answers, or puts the operation into another lane.
    fn pass_on(&self, waiter: Waiter, decided: Decided, may_be_more: bool) {
        match decided.verdict {
            Verdict::Locked => self.enter(decided.resources, waiter),
            #[cfg(feature = "redis")]
            Verdict::Fenced => _ = waiter.answer.send(Err(WorkError::Fenced.of(Shared::OPERATION))),
            Verdict::Raced => self.enter(Lane::new(), waiter),
            Verdict::Answered(Err(refusal)) if may_be_more && is_for_lack_of_units(&refusal) => {
                self.enter(decided.resources, waiter);
            }
            Verdict::Answered(answer) => _ = waiter.answer.send(answer.map_err(ReservationsError::from)),
        }
    }
}
