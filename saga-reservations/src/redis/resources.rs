//! What Redis knows of resources comes from SQL.

use std::time::Duration;

use super::mark_rounds::ROUNDS_MAX;
use super::points::Point;
use super::reply::{Reply, Word};
use super::reservations::RedisReservations;
use super::scripts::{LOOK, LOWER, SETTLE};
use crate::ReservationsError;
use crate::book::{Book, Reservation, Resource, ResourceName};
use crate::contract::Reservations as _;
use crate::sql::{Found, Question};

const READING: &str = "read a resource";
const SETTING: &str = "set a capacity";

/// How often an operation begins again when Redis or a resource was changed meanwhile.
pub(super) const ATTEMPTS_MAX: usize = 16;

/// How long a capacity that is being lowered counts before it is in SQL. A transaction on SQL lasts for seconds at most.
const LOWERING_MAX: Duration = Duration::from_mins(1);

/// What became of a hold in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// SQL has the reservation now.
    Moved,
    /// SQL bars it.
    Released,
    /// SQL refused it.
    Back,
    /// The capacity stays as it was.
    Lifted,
    /// Only the resources are told.
    Nothing,
}

/// Redis was emptied, or changed, again and again.
#[derive(Debug, thiserror::Error)]
#[error("Redis was emptied or changed again and again meanwhile")]
pub(super) struct Unsettled;

impl RedisReservations {
    /// Reads these resources from SQL, and tells Redis, together with what became of a hold. Resources of a unique intent that
    /// SQL does not have are made in Redis: they are written with the first confirmation.
    pub(super) async fn settle(
        &self,
        operation: &'static str,
        question: Question,
        hold: Option<&Reservation>,
        outcome: Outcome,
        is_unique: bool,
    ) -> Result<(Found, Reply), ReservationsError> {
        for _ in 0..ATTEMPTS_MAX {
            // Nothing is committed in an earlier epoch after this one has begun.
            let epoch = self.holds.epoch();
            let found = self.sql.look(question.clone()).await?;
            self.points.reach(Point::Read).await;
            let arguments = settlement(&question, &found, (hold, outcome), is_unique);
            if let Some(reply) = self.holds.call_in(epoch, operation, &SETTLE, arguments).await? {
                return Ok((found, reply));
            }
        }
        Err(ReservationsError::unavailable(operation, Unsettled))
    }

    /// Tells Redis what SQL has committed. The commit stands if Redis cannot be told: it is told when units are lacking, or
    /// when a mark is swept.
    pub(super) async fn tell(&self, operation: &'static str, reservation: &Reservation, outcome: Outcome) {
        let told = self.settle(operation, Question::of(reservation), Some(reservation), outcome, false).await;
        if let Err(error) = told {
            tracing::warn!(key = %reservation.key, %error, "Redis could not be told what SQL has committed");
        }
    }

    pub(super) async fn find_resource(&self, name: &ResourceName) -> Result<Option<Resource>, ReservationsError> {
        let question = Question { key: None, resources: vec![name.clone()] };
        let (found, reply) = self.settle(READING, question, None, Outcome::Nothing, false).await?;
        let mut known = reply.resources.into_iter().next();
        if known.is_none() {
            let arguments = vec![String::new(), name.to_string()];
            let looked = self.holds.call(READING, &LOOK, None, arguments).await?;
            known = looked.answer.resources.into_iter().next();
        }
        if let (Some(known), Some((in_sql, _))) = (&mut known, found.resources.first()) {
            known.last_token = in_sql.last_token;
        }
        Ok(known)
    }

    /// A lower capacity counts in Redis before it is in SQL, a higher one behind it: Redis never believes that more is free.
    pub(super) async fn change_capacity(
        &self,
        name: &ResourceName,
        capacity: u64,
    ) -> Result<Resource, ReservationsError> {
        let question = Question { key: None, resources: vec![name.clone()] };
        let (mut is_read, mut rounds) = (false, 0);
        for _ in 0..ATTEMPTS_MAX {
            let lowering = u64::try_from(LOWERING_MAX.as_micros()).unwrap_or(u64::MAX);
            let arguments = vec![name.to_string(), capacity.to_string(), lowering.to_string()];
            let reply = self.holds.call(SETTING, &LOWER, None, arguments).await?.answer;
            match reply.word {
                Word::Again => {}
                Word::Load | Word::Short | Word::Marked if !is_read => {
                    self.settle(SETTING, question.clone(), None, Outcome::Nothing, false).await?;
                    is_read = true;
                }
                Word::Marked if rounds < ROUNDS_MAX => {
                    rounds += 1;
                    self.settle_marks(vec![name.clone()]).await?;
                }
                Word::Short | Word::Marked => {
                    if let Err(refusal) = book_of(reply.resources).set_capacity(name, capacity) {
                        return Err(refusal.into());
                    }
                    is_read = false;
                }
                // Redis has it, or there is no such resource yet.
                _ => {
                    self.points.reach(Point::Lowered).await;
                    let set = self.sql.set_capacity(name, capacity).await;
                    if matches!(set, Err(ReservationsError::Unavailable { .. })) {
                        return set;
                    }
                    let outcome = if set.is_err() { Outcome::Lifted } else { Outcome::Nothing };
                    let told = self.settle(SETTING, question, None, outcome, false).await;
                    let changed = set?;
                    let held = told.map(|(_, reply)| reply.resources.first().map_or(0, |known| known.held));
                    return Ok(Resource { held: held.unwrap_or(changed.held), ..changed });
                }
            }
        }
        Err(ReservationsError::unavailable(SETTING, Unsettled))
    }
}

/// The book that says why these resources are not enough.
pub(super) fn book_of(resources: Vec<Resource>) -> Book {
    let mut book = Book::default();
    for resource in resources {
        book.load_resource(resource);
    }
    book
}

fn settlement(
    question: &Question,
    found: &Found,
    (hold, outcome): (Option<&Reservation>, Outcome),
    is_unique: bool,
) -> Vec<String> {
    let outcome = match outcome {
        Outcome::Moved => "moved",
        Outcome::Released => "released",
        Outcome::Back => "back",
        Outcome::Lifted => "lifted",
        Outcome::Nothing => "",
    };
    let (key, token) = hold.map_or_else(Default::default, |reservation| {
        let token = reservation.first_token.0;
        // Only the key of such a hold is known.
        (reservation.key.to_string(), if token == 0 { String::new() } else { token.to_string() })
    });
    let mut arguments = vec![key, token, outcome.to_owned()];
    for name in &question.resources {
        let known = found.resources.iter().find(|(resource, _)| resource.name == *name);
        let (resource, version) = match known {
            Some((resource, version)) => (resource.clone(), *version),
            None if is_unique => (Resource::new(name.clone(), 1, true), 0),
            None => continue,
        };
        let numbers = [version, resource.capacity, resource.confirmed, resource.held, u64::from(resource.is_unique)];
        arguments.push(name.to_string());
        arguments.extend(numbers.iter().map(u64::to_string));
    }
    arguments
}
