use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use saga_core::store::Timestamp;

use super::heartbeat::{HoldLost, keep_while};
use crate::ReservationsError;
use crate::book::{Action, FencingToken, Late, Operation, Reservation, ReservationKey};
use crate::contract::Reservations;

/// What a client holds, or has confirmed. Dropping it releases nothing: the hold expires.
#[derive(Clone)]
pub struct Held {
    reservations: Arc<dyn Reservations>,
    reservation: Reservation,
    ttl: Duration,
}

impl Held {
    pub(super) fn new(reservations: Arc<dyn Reservations>, reservation: Reservation, ttl: Duration) -> Self {
        Self { reservations, reservation, ttl }
    }

    /// Its key.
    pub fn key(&self) -> &ReservationKey {
        &self.reservation.key
    }

    /// Its token, for the systems that the holder writes to.
    pub fn token(&self) -> FencingToken {
        self.reservation.token
    }

    /// When it expires, unless it is extended.
    pub fn expires_at(&self) -> Timestamp {
        self.reservation.expires_at
    }

    /// The reservation as the answer had it.
    pub fn reservation(&self) -> &Reservation {
        &self.reservation
    }

    /// Confirms it.
    ///
    /// # Errors
    /// When it has expired or was released, and when the reservations do not answer.
    ///
    /// # Cancel safety
    /// That of [`Reservations`](crate::Reservations).
    pub async fn confirm(&self) -> Result<Reservation, ReservationsError> {
        self.perform(Action::Confirm { token: self.token(), late: Late::Refuse }).await
    }

    /// Confirms it, also if it has expired and the units are still free.
    ///
    /// # Errors
    /// When the units are gone or it was released, and when the reservations do not answer.
    ///
    /// # Cancel safety
    /// That of [`Reservations`](crate::Reservations).
    pub async fn confirm_if_free(&self) -> Result<Reservation, ReservationsError> {
        self.perform(Action::Confirm { token: self.token(), late: Late::IfFree }).await
    }

    /// Releases it.
    ///
    /// # Errors
    /// When it is confirmed, and when the reservations do not answer.
    ///
    /// # Cancel safety
    /// That of [`Reservations`](crate::Reservations).
    pub async fn release(&self) -> Result<Reservation, ReservationsError> {
        self.perform(Action::Release { token: Some(self.token()) }).await
    }

    /// Extends it to its time to live from now.
    ///
    /// # Errors
    /// When it has ended, and when the reservations do not answer.
    ///
    /// # Cancel safety
    /// That of [`Reservations`](crate::Reservations).
    pub async fn extend(&self) -> Result<Reservation, ReservationsError> {
        self.perform(Action::Extend { token: self.token(), ttl: self.ttl }).await
    }

    /// Runs long work, and extends the hold at each third of its time to live meanwhile.
    ///
    /// # Errors
    /// When the hold has ended, or could not be extended for as long as it lasts. Then the work is dropped.
    ///
    /// # Cancel safety
    /// Dropping it drops the work. The hold ends at its time.
    pub async fn keep_while<F: Future>(&self, work: F) -> Result<F::Output, HoldLost> {
        keep_while(self.key(), self.ttl, || self.extend(), work).await
    }

    async fn perform(&self, action: Action) -> Result<Reservation, ReservationsError> {
        self.reservations.perform(Operation::new(self.key().clone(), action)).await
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("reservation", &self.reservation).finish_non_exhaustive()
    }
}
