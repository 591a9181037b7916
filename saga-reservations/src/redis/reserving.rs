//! A request is held in Redis. If SQL may have the key, it is asked afterwards: what SQL has of a key counts, and it knows the
//! keys from before a flush.

use super::mark_rounds::ROUNDS_MAX;
use super::points::Point;
use super::reply::Word;
use super::requests::{RESERVING, Request};
use super::reservations::RedisReservations;
use super::resources::{ATTEMPTS_MAX, Outcome, Unsettled, book_of};
use crate::ReservationsError;
use crate::book::{Book, Operation, Reservation, Reserve};
use crate::sql::Question;
use saga_core::store::Timestamp;

impl RedisReservations {
    pub(super) async fn reserve(
        &self,
        operation: &Operation,
        request: &Reserve,
    ) -> Result<Reservation, ReservationsError> {
        let key = &operation.key;
        let lines = request.check().map_err(crate::Refusal::from)?;
        let (ttl, is_unique) = (request.time_to_live(), request.is_unique());
        let asked = Request { key: key.clone(), lines: lines.as_slice().into(), ttl, is_unique };
        let resources: Vec<_> = lines.iter().map(|line| line.resource.clone()).collect();
        let (mut is_read, mut rounds) = (false, 0);
        for _ in 0..ATTEMPTS_MAX {
            let reply = self.requests.hold(asked.clone()).await?;
            match reply.word {
                Word::Again => {}
                Word::Marked if is_read && rounds < ROUNDS_MAX => {
                    rounds += 1;
                    self.settle_marks(resources.clone()).await?;
                }
                Word::Short | Word::Marked if is_read => {
                    if let Err(refusal) = book_of(reply.resources).perform(operation, reply.now) {
                        return Err(refusal.into());
                    }
                    is_read = false;
                }
                // What Redis knows may be old, so no request is refused before SQL was read.
                Word::Load | Word::Short | Word::Marked => {
                    let question = Question { key: Some(key.clone()), resources: resources.clone() };
                    let (found, told) = self.settle(RESERVING, question, None, Outcome::Nothing, is_unique).await?;
                    if let Some(known) = found.reservation {
                        return same_again(operation, known, reply.now);
                    }
                    if told.resources.len() < lines.len() {
                        let refused = book_of(told.resources).perform(operation, reply.now);
                        return refused.map_err(ReservationsError::from);
                    }
                    is_read = reply.word != Word::Load;
                }
                Word::Fresh => {
                    self.points.reach(Point::Held).await;
                    let token = reply.fresh.ok_or_else(|| ReservationsError::unavailable(RESERVING, Unsettled))?;
                    return Ok(Reservation::held(key.clone(), (lines, is_unique), token, (reply.now, ttl)));
                }
                _ => {
                    self.points.reach(Point::Held).await;
                    let found = self.sql.look(Question { key: Some(key.clone()), resources: Vec::new() }).await?;
                    let hold = reply.hold.map(|hold| hold.reservation);
                    return match (found.reservation, hold) {
                        (Some(known), hold) => {
                            if let Some(hold) = hold {
                                self.tell(RESERVING, &hold, Outcome::Moved).await;
                            }
                            same_again(operation, known, reply.now)
                        }
                        (None, Some(hold)) if reply.word == Word::Done => Ok(hold),
                        (None, Some(hold)) => same_again(operation, hold, reply.now),
                        // SQL has forgotten what it had of the key, and Redis will.
                        (None, None) => Err(ReservationsError::unavailable(RESERVING, Unsettled)),
                    };
                }
            }
        }
        Err(ReservationsError::unavailable(RESERVING, Unsettled))
    }
}

/// What a repeated request is answered.
fn same_again(operation: &Operation, known: Reservation, now: Timestamp) -> Result<Reservation, ReservationsError> {
    let mut book = Book::default();
    book.load_reservation(known);
    Ok(book.perform(operation, now)?)
}
