//! Several operations in one transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use saga_sql::{Json, SqlConn};

#[cfg(feature = "redis")]
use super::epochs;
use super::overdue::{Locking, Scope};
use super::perform::SWEEP;
use super::task::Task;
use super::work::{Work, WorkError};
use super::{rows, statements};
use crate::book::{Book, Refusal, Reservation, ResourceName};

/// What several callers asked for. The tasks are carried out one after the other, and committed together: an operation that is
/// refused changes nothing, so it does not hinder the others.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) tasks: Arc<[Task]>,
    /// Whether it waits for resources that other transactions have locked, and ends the holds that are over first. If not, the
    /// operations on such resources are left out.
    pub(super) is_patient: bool,
}

/// What became of the operations.
#[derive(Debug)]
pub(super) struct Outcomes {
    /// One for each operation.
    pub(super) decided: Vec<Decided>,
    /// How many holds were found that are over.
    pub(super) overdue: usize,
    has_changes: bool,
}

/// What became of an operation.
#[derive(Debug)]
pub(super) struct Decided {
    /// The resources that it is about.
    pub(super) resources: Vec<ResourceName>,
    pub(super) verdict: Verdict,
}

#[derive(Debug)]
pub(super) enum Verdict {
    Answered(Result<Reservation, Refusal>),
    /// Another transaction has locked a resource.
    Locked,
    /// Redis has begun another epoch, so it may have lost the hold.
    #[cfg(feature = "redis")]
    Fenced,
    /// The reservation was made after its lines had been looked for.
    Raced,
}

impl Work for Shared {
    type Answer = Outcomes;

    const OPERATION: &'static str = "change a reservation";

    async fn run<C: SqlConn>(&self, conn: &mut C, clock_shift: i64) -> Result<Self::Answer, WorkError> {
        #[cfg(feature = "redis")]
        let epoch = epochs::of_tasks(conn, &self.tasks).await?;
        let mut scope = Scope::default();
        for task in self.tasks.iter() {
            scope.add_task(task);
        }
        let overdue = if self.is_patient { scope.add_overdue(conn, clock_shift, SWEEP).await? } else { 0 };
        let locking = if self.is_patient { Locking::Wait } else { Locking::Skip };
        let (mut book, now) = scope.load(conn, clock_shift, locking).await?;
        let resources: Vec<_> = self.tasks.iter().map(|task| resources_of(task, &book)).collect();
        let locked = if self.is_patient { BTreeSet::new() } else { locked_by_others(conn, &resources, &book).await? };
        if self.is_patient {
            book.expire_overdue(now, usize::MAX);
        }
        let decide = |(task, resources): (&Task, Vec<ResourceName>)| {
            #[cfg(feature = "redis")]
            if task.epoch().is_some_and(|given| given != epoch) {
                return Decided { resources, verdict: Verdict::Fenced };
            }
            let verdict = if resources.iter().any(|name| locked.contains(name)) {
                Verdict::Locked
            } else if task.is_raced(&book) {
                Verdict::Raced
            } else {
                Verdict::Answered(task.carry_out(&mut book, now))
            };
            Decided { resources, verdict }
        };
        let decided = self.tasks.iter().zip(resources).map(decide).collect();
        let changes = book.take_changes();
        rows::write(conn, &changes, &book).await?;
        Ok(Outcomes { decided, overdue, has_changes: !changes.is_empty() })
    }

    fn has_written(outcomes: &Outcomes) -> bool {
        outcomes.has_changes
    }
}

/// The resources that a task changes.
fn resources_of(task: &Task, book: &Book) -> Vec<ResourceName> {
    let lines = task.own_lines().or_else(|| Some(book.reservation(task.key())?.lines.clone()));
    lines.unwrap_or_default().into_iter().map(|line| line.resource).collect()
}

/// Of the resources that were not locked, those that there are.
async fn locked_by_others<C: SqlConn>(
    conn: &mut C,
    resources: &[Vec<ResourceName>],
    book: &Book,
) -> Result<BTreeSet<ResourceName>, WorkError> {
    let missing: BTreeSet<_> = resources.iter().flatten().filter(|name| book.resource(name).is_none()).collect();
    if missing.is_empty() {
        return Ok(BTreeSet::new());
    }
    let names: Vec<ResourceName> = conn.query(statements::of::<C>().find_resources, &[&Json(&missing)]).await?;
    Ok(names.into_iter().collect())
}
