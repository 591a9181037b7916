//! Confirmations that SQL has and Redis was not told of yet.
//!
//! Between the commit and the word to Redis, the units of a hold may be counted twice: Redis may hear from another server what is
//! confirmed, and has the hold still. Before a server refuses a request for lack of units, it looks for such holds.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::reservations::RedisReservations;
use super::resources::Outcome;
use super::scripts::{LOOK, MARKS};
use crate::ReservationsError;
use crate::book::{ReservationKey, ResourceName};
use crate::sql::Question;

const SETTLING: &str = "look for confirmations that Redis was not told of";

/// The most marks of one round, the oldest first: Redis does nothing else meanwhile.
const MARKS_MAX: usize = 64;

impl RedisReservations {
    /// Tells Redis of those confirmations of these resources that SQL has.
    pub(super) async fn settle_marks(&self, names: Vec<ResourceName>) -> Result<(), ReservationsError> {
        self.mark_rounds.0.ask(names, |questions| self.settle_marks_for_all(questions)).await
    }

    async fn settle_marks_for_all(&self, questions: Vec<Vec<ResourceName>>) -> Vec<Result<(), ReservationsError>> {
        let settled = self.settle_marks_of(questions.iter().flatten()).await.map_err(Arc::new);
        let answer = |_| match &settled {
            Ok(()) => Ok(()),
            Err(error) => Err(ReservationsError::unavailable(SETTLING, Arc::clone(error))),
        };
        questions.iter().map(answer).collect()
    }

    async fn settle_marks_of(&self, names: impl Iterator<Item = &ResourceName>) -> Result<(), ReservationsError> {
        let arguments = [MARKS_MAX.to_string()].into_iter().chain(names.map(ToString::to_string)).collect();
        let words = self.holds.words(SETTLING, &MARKS, arguments).await?.answer;
        let mut settling = JoinSet::new();
        for key in words.into_iter().skip(1) {
            let (server, key) = (self.clone(), ReservationKey::new(key)?);
            settling.spawn(async move { server.settle_if_committed(&key).await });
        }
        while let Some(settled) = settling.join_next().await {
            settled.map_err(|error| ReservationsError::unavailable(SETTLING, error))??;
        }
        Ok(())
    }

    /// What SQL has of a key counts, so its hold gives its units back. The numbers that Redis is told with it are read after that.
    async fn settle_if_committed(&self, key: &ReservationKey) -> Result<(), ReservationsError> {
        let question = Question { key: Some(key.clone()), resources: Vec::new() };
        if self.sql.look(question).await?.reservation.is_none() {
            return Ok(());
        }
        let arguments = vec![key.to_string(), String::new()];
        let hold = self.holds.call(SETTLING, &LOOK, Some(key), arguments).await?.answer.hold;
        if let Some(marked) = hold.filter(|hold| hold.is_confirming) {
            self.tell(SETTLING, &marked.reservation, Outcome::Moved).await;
        }
        Ok(())
    }
}
