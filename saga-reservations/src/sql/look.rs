//! Reading reservations and resources for many callers at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use saga_core::__private::Batches;
use saga_core::store::Timestamp;
use saga_sql::{Json, SqlConn};

use super::rows::{ReservationRow, ResourceRow};
use super::statements;
use super::transactions::Transactions;
use super::work::{Work, WorkError};
use crate::ReservationsError;
use crate::book::{Reservation, ReservationKey, Resource, ResourceName};

/// The most callers that one read is for.
const CALLERS_MAX: usize = 256;

/// What a caller wants to know.
#[derive(Debug, Clone, Default)]
pub(crate) struct Question {
    pub(crate) key: Option<ReservationKey>,
    pub(crate) resources: Vec<ResourceName>,
}

impl Question {
    /// About a reservation and its resources.
    pub(crate) fn of(reservation: &Reservation) -> Self {
        let resources = reservation.lines.iter().map(|line| line.resource.clone()).collect();
        Self { key: Some(reservation.key.clone()), resources }
    }
}

/// What the database has.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// As it is by the clock.
    pub(crate) reservation: Option<Reservation>,
    /// Each with its version, which grows with each change.
    pub(crate) resources: Vec<(Resource, u64)>,
}

/// Reads that callers share: each is answered by one that began after it was asked.
#[derive(Debug, Clone)]
pub(super) struct SharedReads(Batches<Question, Result<Found, ReservationsError>>);

impl Default for SharedReads {
    fn default() -> Self {
        Self(Batches::new(CALLERS_MAX, 1))
    }
}

impl SharedReads {
    pub(super) async fn look(
        &self,
        transactions: &Transactions,
        question: Question,
    ) -> Result<Found, ReservationsError> {
        self.0.ask(question, |questions| read_for(transactions, questions)).await
    }
}

async fn read_for(transactions: &Transactions, questions: Vec<Question>) -> Vec<Result<Found, ReservationsError>> {
    let keys: BTreeSet<_> = questions.iter().filter_map(|question| question.key.clone()).collect();
    let resources: BTreeSet<_> = questions.iter().flat_map(|question| question.resources.clone()).collect();
    let read = transactions.run(|| Read { keys: keys.clone(), resources: resources.clone() }).await.map_err(Arc::new);
    let answer = |question: Question| match &read {
        Ok((reservations, resources)) => {
            let is_of_key = |found: &&Reservation| Some(&found.key) == question.key.as_ref();
            let reservation = reservations.iter().find(is_of_key).cloned();
            let is_asked = |(found, _): &&(Resource, u64)| question.resources.contains(&found.name);
            let resources = resources.iter().filter(is_asked).cloned().collect();
            Ok(Found { reservation, resources })
        }
        Err(error) => Err(ReservationsError::unavailable(Read::OPERATION, Arc::clone(error))),
    };
    questions.into_iter().map(answer).collect()
}

struct Read {
    keys: BTreeSet<ReservationKey>,
    resources: BTreeSet<ResourceName>,
}

impl Work for Read {
    type Answer = (Vec<Reservation>, Vec<(Resource, u64)>);

    const OPERATION: &'static str = "read reservations";

    async fn run<C: SqlConn>(&self, conn: &mut C, clock_shift: i64) -> Result<Self::Answer, WorkError> {
        let mut resources: Vec<ResourceRow> = Vec::new();
        if !self.resources.is_empty() {
            resources = conn.query(statements::of::<C>().read_resources, &[&Json(&self.resources)]).await?;
        }
        let mut rows: Vec<ReservationRow> = Vec::new();
        if !self.keys.is_empty() {
            let sql = statements::of::<C>().read_reservations;
            rows = conn.query(sql, &[&Json(&self.keys), &clock_shift]).await?;
        }
        let seen = |row: ReservationRow| {
            let now = Timestamp(row.now);
            Some(row.reservation()?.seen_at(now))
        };
        let reservations = rows.into_iter().filter_map(seen).collect();
        Ok((reservations, resources.into_iter().map(ResourceRow::versioned).collect()))
    }
}
