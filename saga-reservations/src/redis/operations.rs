//! Releases, extensions, what is given back, and operations on what SQL has.

use std::time::Duration;

use saga_core::store::Timestamp;

use super::holds::epoch_of;
use super::points::Point;
use super::reply::Word;
use super::reservations::RedisReservations;
use super::resources::{ATTEMPTS_MAX, Outcome, Unsettled};
use super::scripts::{EXTEND, LOOK, RELEASE};
use crate::book::{
    Action, Book, FencingToken, InvalidReserve, Late, Operation, Reason, Refusal, Reservation, ReservationKey, State,
    check_ttl,
};
use crate::contract::Reservations as _;
use crate::sql::Question;
use crate::{ReservationsError, SqlReservations};

const FINDING: &str = "find a reservation";
const RELEASING: &str = "release a hold";
const EXTENDING: &str = "extend a hold";
const RETURNING: &str = "give a reservation back";

impl RedisReservations {
    pub(super) async fn find_in_both(&self, key: &ReservationKey) -> Result<Option<Reservation>, ReservationsError> {
        // Redis first: what is confirmed meanwhile is found in SQL.
        let arguments = vec![key.to_string(), String::new()];
        let reply = self.holds.call(FINDING, &LOOK, Some(key), arguments).await?.answer;
        let found = self.sql.look(Question { key: Some(key.clone()), resources: Vec::new() }).await?;
        let in_redis = reply.hold.map(|hold| {
            let is_confirming = hold.is_confirming;
            if is_confirming { hold.reservation } else { hold.reservation.seen_at(reply.now) }
        });
        Ok(found.reservation.or(in_redis))
    }

    pub(super) async fn release(
        &self,
        operation: &Operation,
        token: Option<FencingToken>,
    ) -> Result<Reservation, ReservationsError> {
        let key = &operation.key;
        let arguments = vec![key.to_string(), token.map(|token| token.to_string()).unwrap_or_default()];
        for _ in 0..ATTEMPTS_MAX {
            let called = self.holds.call(RELEASING, &RELEASE, Some(key), arguments.clone()).await?;
            let (epoch, reply) = (called.epoch, called.answer);
            let hold = reply.hold.map(|hold| hold.reservation);
            let answer = match (reply.word, hold) {
                (Word::Done, Some(released)) => {
                    // Without a token it may be the hold of a request that did not see yet what SQL has. Then Redis is told
                    // again, and notes the key.
                    let question = Question { key: Some(key.clone()), resources: Vec::new() };
                    if token.is_none() && self.sql.look(question).await?.reservation.is_some() {
                        continue;
                    }
                    return Ok(released);
                }
                (Word::Confirming, Some(marked)) => self.bar(operation, marked, epoch).await,
                (Word::None, _) if token.is_none() => {
                    let nothing = Reservation::tombstone(key.clone(), reply.now);
                    self.bar(operation, nothing, epoch).await
                }
                (_, hold) => self.elsewhere_in(operation, hold, reply.now, Some(epoch)).await,
            };
            match answer {
                Err(error) if SqlReservations::is_fenced(&error) => self.holds.doubt_epoch(),
                answer => return answer,
            }
        }
        Err(ReservationsError::unavailable(RELEASING, Unsettled))
    }

    /// Releases in SQL: there it bars a confirmation that is under way, and a request that comes late, also behind a flush.
    async fn bar(
        &self,
        operation: &Operation,
        hold: Reservation,
        epoch: u64,
    ) -> Result<Reservation, ReservationsError> {
        self.points.reach(Point::Barring).await;
        let unconditional = Operation::new(operation.key.clone(), Action::Release { token: None });
        let barred = self.in_sql(&unconditional, Some(epoch)).await?;
        self.tell(RELEASING, &hold, Outcome::Released).await;
        let is_of_hold = barred.lines.is_empty() && !hold.lines.is_empty();
        Ok(if is_of_hold {
            Reservation { state: State::Released, changed_at: barred.changed_at, ..hold }
        } else {
            barred
        })
    }

    pub(super) async fn extend(
        &self,
        operation: &Operation,
        token: FencingToken,
        ttl: Duration,
    ) -> Result<Reservation, ReservationsError> {
        check_ttl(ttl).map_err(|error: InvalidReserve| Refusal::from(error))?;
        let key = &operation.key;
        let arguments = vec![key.to_string(), token.to_string(), ttl.as_micros().to_string()];
        for _ in 0..ATTEMPTS_MAX {
            let reply = self.holds.call(EXTENDING, &EXTEND, Some(key), arguments.clone()).await?.answer;
            match (reply.word, reply.hold.map(|hold| hold.reservation)) {
                (Word::Done, Some(extended)) => return Ok(extended),
                (Word::Confirming, Some(marked)) => self.finish_confirmation(&marked).await?,
                (_, hold) => return self.elsewhere(operation, hold, reply.now).await,
            }
        }
        Err(ReservationsError::unavailable(EXTENDING, Unsettled))
    }

    pub(super) async fn give_back(&self, operation: &Operation) -> Result<Reservation, ReservationsError> {
        let key = &operation.key;
        let arguments = vec![key.to_string(), String::new()];
        let reply = self.holds.call(RETURNING, &LOOK, Some(key), arguments).await?.answer;
        let hold = reply.hold;
        if let Some(marked) = hold.as_ref().filter(|hold| hold.is_confirming) {
            self.finish_confirmation(&marked.reservation).await?;
        }
        self.elsewhere(operation, hold.map(|hold| hold.reservation), reply.now).await
    }

    /// Confirms a hold that another call has marked.
    pub(super) async fn finish_confirmation(&self, marked: &Reservation) -> Result<(), ReservationsError> {
        let confirm = Action::Confirm { token: marked.token, late: Late::Refuse };
        let operation = Operation::new(marked.key.clone(), confirm);
        match self.confirm(&operation, marked.token, Late::Refuse).await {
            Err(unavailable @ ReservationsError::Unavailable { .. }) => Err(unavailable),
            _ => Ok(()),
        }
    }

    /// An operation that Redis did not carry out: what SQL has of the key counts, and then the hold in Redis.
    pub(super) async fn elsewhere(
        &self,
        operation: &Operation,
        hold: Option<Reservation>,
        now: Timestamp,
    ) -> Result<Reservation, ReservationsError> {
        self.elsewhere_in(operation, hold, now, None).await
    }

    async fn elsewhere_in(
        &self,
        operation: &Operation,
        hold: Option<Reservation>,
        now: Timestamp,
        epoch: Option<u64>,
    ) -> Result<Reservation, ReservationsError> {
        let question = Question { key: Some(operation.key.clone()), resources: Vec::new() };
        if self.sql.look(question).await?.reservation.is_some() {
            return self.in_sql(operation, epoch).await;
        }
        let Some(hold) = hold else { return self.without_hold(operation, now) };
        let mut book = Book::default();
        book.load_reservation(hold);
        Ok(book.perform(operation, now)?)
    }

    /// Carries an operation out in SQL, and tells Redis which units it moved. What may write a key that SQL does not have is
    /// carried out only in the epoch in which Redis noted the key.
    async fn in_sql(&self, operation: &Operation, epoch: Option<u64>) -> Result<Reservation, ReservationsError> {
        let answer = match epoch {
            Some(epoch) => self.sql.perform_in_epoch(operation.clone(), epoch).await?,
            None => self.sql.perform(operation.clone()).await?,
        };
        if !answer.lines.is_empty() {
            self.tell(RETURNING, &answer, Outcome::Nothing).await;
        }
        Ok(answer)
    }

    /// Neither SQL nor Redis has the key. A token of an earlier epoch is that of a hold that Redis has lost.
    fn without_hold(&self, operation: &Operation, now: Timestamp) -> Result<Reservation, ReservationsError> {
        let token = match operation.action {
            Action::Confirm { token, .. } | Action::Extend { token, .. } => Some(token),
            Action::Release { token } => token,
            _ => None,
        };
        let lost = token.filter(|token| (1..self.holds.epoch()).contains(&epoch_of(token.0)));
        let Some(token) = lost else { return Ok(Book::default().perform(operation, now)?) };
        if matches!(operation.action, Action::Release { .. }) {
            let nothing = Reservation::tombstone(operation.key.clone(), now);
            return Ok(Reservation { state: State::Expired, token, first_token: token, ..nothing });
        }
        let message = format!("the hold {} ended when Redis lost it; reserve again under a new key", operation.key);
        Err(Refusal::new(Reason::Expired, message).into())
    }
}
