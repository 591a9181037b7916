//! Holds that are over are ended together with what needs their units.

use std::collections::BTreeSet;

use saga_sql::{Json, SqlConn};
use serde::Deserialize;

use super::rows::{ReservationRow, ResourceRow};
use super::statements;
use super::task::Task;
use super::work::WorkError;
use crate::book::{Book, Line, ReservationKey, ResourceName};
use saga_core::store::Timestamp;

#[derive(Debug, Deserialize)]
struct OverdueRow {
    key: ReservationKey,
    lines: Json<Vec<Line>>,
}

/// What a transaction does about resources that another one has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locking {
    /// It waits until they are free.
    Wait,
    /// It goes on without them.
    #[cfg(feature = "postgres")]
    Skip,
}

/// What a transaction loads.
#[derive(Debug, Default)]
pub(super) struct Scope {
    keys: BTreeSet<ReservationKey>,
    resources: BTreeSet<ResourceName>,
    /// The keys whose reservations say which resources are needed.
    keys_for_resources: BTreeSet<ReservationKey>,
}

impl Scope {
    pub(super) fn of_resource(name: ResourceName) -> Self {
        Self { resources: BTreeSet::from([name]), ..Self::default() }
    }

    /// Adds what a task is about.
    pub(super) fn add_task(&mut self, task: &Task) {
        self.keys.insert(task.key().clone());
        if let Some(lines) = task.own_lines() {
            self.resources.extend(lines.into_iter().map(|line| line.resource));
        } else {
            self.keys_for_resources.insert(task.key().clone());
        }
    }

    /// Adds holds that are over, and their resources. Nothing is locked yet, so each one is looked at again. Returns how many
    /// there are.
    pub(super) async fn add_overdue<C: SqlConn>(
        &mut self,
        conn: &mut C,
        clock_shift: i64,
        limit: usize,
    ) -> Result<usize, WorkError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let overdue: Vec<OverdueRow> = conn.query(statements::of::<C>().read_overdue, &[&clock_shift, &limit]).await?;
        let count = overdue.len();
        for OverdueRow { key, lines } in overdue {
            self.keys.insert(key);
            self.resources.extend(lines.0.into_iter().map(|line| line.resource));
        }
        Ok(count)
    }

    /// Locks the resources in the order of their names, then reads the reservations and the time.
    ///
    /// Every change of a reservation with lines is made under the locks of its resources, so what is read here stays so until
    /// the transaction ends.
    pub(super) async fn load<C: SqlConn>(
        &self,
        conn: &mut C,
        clock_shift: i64,
        locking: Locking,
    ) -> Result<(Book, Timestamp), WorkError> {
        let mut book = Book::default();
        if !self.resources.is_empty() || !self.keys_for_resources.is_empty() {
            let lock = match locking {
                Locking::Wait => statements::of::<C>().lock_resources,
                #[cfg(feature = "postgres")]
                Locking::Skip => statements::of::<C>().lock_free_resources,
            };
            let resources: Vec<ResourceRow> =
                conn.query(lock, &[&Json(&self.resources), &Json(&self.keys_for_resources)]).await?;
            for row in resources {
                book.load_resource(row.into());
            }
        }
        let rows: Vec<ReservationRow> =
            conn.query(statements::of::<C>().read_reservations, &[&Json(&self.keys), &clock_shift]).await?;
        let now = Timestamp(rows.first().map_or(0, |row| row.now));
        for reservation in rows.into_iter().filter_map(ReservationRow::reservation) {
            book.load_reservation(reservation);
        }
        Ok((book, now))
    }
}
