//! A confirmation: Redis marks the hold, SQL commits, Redis moves the units.
//!
//! A marked hold does not expire. A mark that is left behind is found by the sweeper, which asks SQL in the same way.

use saga_core::store::Timestamp;

use super::mark_rounds::ROUNDS_MAX;
use super::points::Point;
use super::reply::{Hold, Word};
use super::reservations::RedisReservations;
use super::resources::{ATTEMPTS_MAX, Outcome, Unsettled, book_of};
use super::scripts::MARK;
use crate::book::{FencingToken, Late, Operation, Reason, Refusal, Reservation};
use crate::sql::Question;
use crate::{ReservationsError, SqlReservations};

const CONFIRMING: &str = "confirm a hold";

impl RedisReservations {
    pub(super) async fn confirm(
        &self,
        operation: &Operation,
        token: FencingToken,
        late: Late,
    ) -> Result<Reservation, ReservationsError> {
        let key = &operation.key;
        let arguments = vec![key.to_string(), token.to_string(), u8::from(late == Late::IfFree).to_string()];
        let (mut is_read, mut rounds) = (false, 0);
        for _ in 0..ATTEMPTS_MAX {
            let called = self.holds.call(CONFIRMING, &MARK, Some(key), arguments.clone()).await?;
            let (epoch, reply) = (called.epoch, called.answer);
            match (reply.word, reply.hold) {
                (Word::Done, Some(hold)) => {
                    if let Some(answer) = self.commit(&hold, epoch).await {
                        return answer;
                    }
                }
                (Word::Again, _) => {}
                (Word::Marked, Some(hold)) if is_read && rounds < ROUNDS_MAX => {
                    rounds += 1;
                    self.settle_marks(Question::of(&hold.reservation).resources).await?;
                }
                (Word::Short | Word::Marked, Some(hold)) if is_read => {
                    if let Err(refusal) = late_refusal(operation, hold, reply.resources, reply.now) {
                        return Err(refusal.into());
                    }
                    is_read = false;
                }
                (Word::Load | Word::Short | Word::Marked, Some(hold)) => {
                    let question = Question::of(&hold.reservation);
                    let (found, _) =
                        self.settle(CONFIRMING, question, None, Outcome::Nothing, hold.reservation.is_unique).await?;
                    if found.reservation.is_some() {
                        return self.elsewhere(operation, Some(hold.reservation), reply.now).await;
                    }
                    is_read = reply.word != Word::Load;
                }
                (_, hold) => {
                    return self.elsewhere(operation, hold.map(|hold| hold.reservation), reply.now).await;
                }
            }
        }
        Err(ReservationsError::unavailable(CONFIRMING, Unsettled))
    }

    /// Confirms a marked hold in SQL. `None` if Redis was emptied or restarted meanwhile, and must be asked again.
    async fn commit(&self, hold: &Hold, epoch: u64) -> Option<Result<Reservation, ReservationsError>> {
        self.points.reach(Point::Marked).await;
        let answer = self.sql.confirm_hold(hold.to_confirm(), epoch).await;
        self.points.reach(Point::Committed).await;
        let outcome = match &answer {
            Ok(_) => Outcome::Moved,
            Err(error) if SqlReservations::is_fenced(error) => {
                self.holds.doubt_epoch();
                return None;
            }
            Err(ReservationsError::Refused(refusal)) => match refusal.reason() {
                // SQL has something else of this key.
                Reason::StaleToken | Reason::Ended | Reason::Expired => Outcome::Moved,
                _ => Outcome::Back,
            },
            // It is unknown whether it was committed. The mark stays until SQL answers.
            Err(ReservationsError::Unavailable { .. }) => return Some(answer),
        };
        self.tell(CONFIRMING, &hold.reservation, outcome).await;
        Some(answer)
    }
}

/// Why a hold that has expired cannot take its units again.
fn late_refusal(
    operation: &Operation,
    hold: Hold,
    resources: Vec<crate::Resource>,
    now: Timestamp,
) -> Result<Reservation, Refusal> {
    let mut book = book_of(resources);
    book.load_reservation(hold.reservation);
    book.perform(operation, now)
}
