//! Several operations in one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use saga_sql::{Json, SqlConn};
use serde::Deserialize;

#[cfg(feature = "redis")]
use super::epochs;
use super::overdue::{Locking, Scope};
use super::perform::SWEEP;
use super::task::Task;
use super::work::{Work, WorkError};
use super::{rows, statements};
use crate::book::{Book, Line, Refusal, Reservation, ReservationKey, ResourceName};

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

#[derive(Debug, Deserialize)]
struct LinesRow {
    key: ReservationKey,
    lines: Json<Vec<Line>>,
}

impl Work for Shared {
    type Answer = Outcomes;

    const OPERATION: &'static str = "change a reservation";

    async fn run<C: SqlConn>(&self, conn: &mut C, clock_shift: i64) -> Result<Self::Answer, WorkError> {
        #[cfg(feature = "redis")]
        let epoch = epochs::of_tasks(conn, &self.tasks).await?;
        let resources = resources_of(conn, &self.tasks).await?;
        let mut scope = Scope::default();
        scope.keys.extend(self.tasks.iter().map(|task| task.key().clone()));
        scope.resources.extend(resources.iter().flatten().cloned());
        let overdue = if self.is_patient { scope.add_overdue(conn, clock_shift, SWEEP).await? } else { 0 };
        let locking = if self.is_patient { Locking::Wait } else { Locking::Skip };
        let (mut book, now) = scope.load(conn, clock_shift, locking).await?;
        let locked = if self.is_patient { BTreeSet::new() } else { locked_by_others(conn, &scope, &book).await? };
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

/// The resources that each task changes.
async fn resources_of<C: SqlConn>(conn: &mut C, tasks: &[Task]) -> Result<Vec<Vec<ResourceName>>, WorkError> {
    let keys: BTreeSet<_> = tasks.iter().filter(|task| task.own_lines().is_none()).map(Task::key).collect();
    let mut known = BTreeMap::new();
    if !keys.is_empty() {
        let rows: Vec<LinesRow> = conn.query(statements::of::<C>().read_lines, &[&Json(&keys)]).await?;
        known.extend(rows.into_iter().map(|row| (row.key, row.lines.0)));
    }
    let lines =
        tasks.iter().map(|task| task.own_lines().or_else(|| known.get(task.key()).cloned()).unwrap_or_default());
    Ok(lines.map(|lines| lines.into_iter().map(|line| line.resource).collect()).collect())
}

/// Of the resources that were not locked, those that there are.
async fn locked_by_others<C: SqlConn>(
    conn: &mut C,
    scope: &Scope,
    book: &Book,
) -> Result<BTreeSet<ResourceName>, WorkError> {
    let missing: Vec<_> = scope.resources.iter().filter(|name| book.resource(name).is_none()).collect();
    if missing.is_empty() {
        return Ok(BTreeSet::new());
    }
    let names: Vec<ResourceName> = conn.query(statements::of::<C>().find_resources, &[&Json(&missing)]).await?;
    Ok(names.into_iter().collect())
}
