//! Several operations in one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use saga_sql::{Json, SqlConn};
use serde::Deserialize;

use super::overdue::{Locking, Scope};
use super::perform::SWEEP;
use super::work::{Work, WorkError};
use super::{rows, statements};
use crate::book::{Action, Book, Line, Operation, Refusal, Reservation, ReservationKey, ResourceName};

/// Operations of several callers. They are carried out one after the other, and committed together: an operation that is
/// refused changes nothing, so it does not hinder the others.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) operations: Arc<[Operation]>,
    /// Whether it waits for resources that other transactions have locked, and ends the holds that are over first. If not, the
    /// operations on such resources are left out.
    pub(super) is_patient: bool,
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
    /// The reservation was made after its lines had been looked for.
    Raced,
}

#[derive(Debug, Deserialize)]
struct LinesRow {
    key: ReservationKey,
    lines: Json<Vec<Line>>,
}

impl Work for Shared {
    /// One for each operation, and how many holds were found that are over.
    type Answer = (Vec<Decided>, usize);

    const OPERATION: &'static str = "change a reservation";

    async fn run<C: SqlConn>(&self, conn: &mut C, clock_shift: i64) -> Result<Self::Answer, WorkError> {
        let resources = resources_of(conn, &self.operations).await?;
        let mut scope = Scope::default();
        scope.keys.extend(self.operations.iter().map(|operation| operation.key.clone()));
        scope.resources.extend(resources.iter().flatten().cloned());
        let overdue = if self.is_patient { scope.add_overdue(conn, clock_shift, SWEEP).await? } else { 0 };
        let locking = if self.is_patient { Locking::Wait } else { Locking::Skip };
        let (mut book, now) = scope.load(conn, clock_shift, locking).await?;
        let locked = if self.is_patient { BTreeSet::new() } else { locked_by_others(conn, &scope, &book).await? };
        if self.is_patient {
            book.expire_overdue(now, usize::MAX);
        }
        let decide = |(operation, resources): (&Operation, Vec<ResourceName>)| {
            let is_request = matches!(operation.action, Action::Reserve(_));
            let verdict = if resources.iter().any(|name| locked.contains(name)) {
                Verdict::Locked
            } else if !is_request && !book.has_resources_of(&operation.key) {
                Verdict::Raced
            } else {
                Verdict::Answered(book.perform(operation, now))
            };
            Decided { resources, verdict }
        };
        let decided = self.operations.iter().zip(resources).map(decide).collect();
        let changes = book.take_changes();
        rows::write(conn, &changes, &book).await?;
        Ok((decided, overdue))
    }
}

/// The resources that each operation changes. The lines of a reservation never change, so they are read without a lock.
async fn resources_of<C: SqlConn>(conn: &mut C, operations: &[Operation]) -> Result<Vec<Vec<ResourceName>>, WorkError> {
    let is_request = |operation: &&Operation| matches!(operation.action, Action::Reserve(_));
    let keys: BTreeSet<_> =
        operations.iter().filter(|operation| !is_request(operation)).map(|operation| &operation.key).collect();
    let mut known = BTreeMap::new();
    if !keys.is_empty() {
        let rows: Vec<LinesRow> = conn.query(statements::of::<C>().read_lines, &[&Json(&keys)]).await?;
        known.extend(rows.into_iter().map(|row| (row.key, row.lines.0)));
    }
    let lines = operations.iter().map(|operation| match &operation.action {
        // The book refuses a request that cannot be served.
        Action::Reserve(request) => request.check().unwrap_or_default(),
        _ => known.get(&operation.key).cloned().unwrap_or_default(),
    });
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
