//! Reading reservations and resources for many callers at once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use saga_core::store::Timestamp;
use saga_sql::{Json, SqlConn};
use tokio::sync::oneshot;

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

/// Questions that wait for the read before them, and then share the next one. So each is answered by a read that began after
/// it was asked. The caller that comes first reads for all.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedReads {
    waiting: Arc<Mutex<Vec<Waiter>>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
struct Waiter {
    question: Question,
    answer: oneshot::Sender<Result<Found, ReservationsError>>,
}

impl SharedReads {
    pub(super) async fn look(
        &self,
        transactions: &Transactions,
        question: Question,
    ) -> Result<Found, ReservationsError> {
        loop {
            let (answer, mut answered) = oneshot::channel();
            self.waiting().push(Waiter { question: question.clone(), answer });
            let _turn = self.turn.lock().await;
            if let Ok(found) = answered.try_recv() {
                return found;
            }
            let waiters: Vec<_> = {
                let mut waiting = self.waiting();
                waiting.retain(|waiter| !waiter.answer.is_closed());
                let count = waiting.len().min(CALLERS_MAX);
                waiting.drain(..count).collect()
            };
            read_for(transactions, waiters).await;
            if let Ok(found) = answered.try_recv() {
                return found;
            }
            // The caller that read for this one was dropped, or too many were before it.
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Waiter>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read_for(transactions: &Transactions, waiters: Vec<Waiter>) {
    let keys: BTreeSet<_> = waiters.iter().filter_map(|waiter| waiter.question.key.clone()).collect();
    let resources: BTreeSet<_> = waiters.iter().flat_map(|waiter| waiter.question.resources.clone()).collect();
    let read = transactions.run(|| Read { keys: keys.clone(), resources: resources.clone() }).await;
    match read {
        Ok((reservations, resources)) => {
            for Waiter { question, answer } in waiters {
                let is_of_key = |found: &&Reservation| Some(&found.key) == question.key.as_ref();
                let reservation = reservations.iter().find(is_of_key).cloned();
                let is_asked = |(found, _): &&(Resource, u64)| question.resources.contains(&found.name);
                let resources = resources.iter().filter(is_asked).cloned().collect();
                // The caller may be gone.
                _ = answer.send(Ok(Found { reservation, resources }));
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for waiter in waiters {
                let unavailable = ReservationsError::unavailable(Read::OPERATION, Arc::clone(&error));
                _ = waiter.answer.send(Err(unavailable));
            }
        }
    }
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
