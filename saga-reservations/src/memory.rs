//! Reservations in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::env::{Environment, TokioEnvironment};
use saga_core::store::Timestamp;

use crate::ReservationsError;
use crate::book::{Book, Operation, Reservation, ReservationKey, Resource, ResourceName};
use crate::contract::{Reservations, ReservationsStore};

/// Reservations in memory, for tests. They end with the process.
///
/// # Examples
/// ```
/// use saga_reservations::{MemoryReservations, Reason, ReservationsClient, Reserve};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = ReservationsClient::new(MemoryReservations::current()?);
/// client.set_capacity("seat/LH-400", 2).await?;
/// let seats = client.reserve(Reserve::of("seat/LH-400", 2)).await?;
/// let refused = client.reserve(Reserve::of("seat/LH-400", 1)).await.unwrap_err();
/// assert_eq!(refused.refusal().map(|refusal| refusal.reason()), Some(Reason::Insufficient));
/// seats.confirm().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemoryReservations {
    book: Arc<Mutex<Book>>,
    environment: Arc<dyn Environment>,
}

impl MemoryReservations {
    /// No reservations, with the clock of the tokio runtime that runs the caller.
    ///
    /// # Errors
    /// When the caller does not run inside a tokio runtime.
    pub fn current() -> Result<Self, tokio::runtime::TryCurrentError> {
        Ok(Self::new(Arc::new(TokioEnvironment::current()?)))
    }

    /// No reservations, with the clock of this environment.
    pub fn new(environment: Arc<dyn Environment>) -> Self {
        Self { book: Arc::default(), environment }
    }

    fn now(&self) -> Timestamp {
        Timestamp::of_environment(self.environment.now())
    }

    /// A panic inside would leave an operation half done; there is none, for the book checks before it writes.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something after the holds that are over have ended, so that no refusal is due to them.
    fn swept<T>(&self, act: impl FnOnce(&mut Book, Timestamp) -> T) -> T {
        let mut book = self.book();
        let now = self.now();
        book.expire_overdue(now, usize::MAX);
        let answer = act(&mut book, now);
        book.take_changes();
        answer
    }
}

#[async_trait]
impl Reservations for MemoryReservations {
    async fn perform(&self, operation: Operation) -> Result<Reservation, ReservationsError> {
        Ok(self.swept(|book, now| book.perform(&operation, now))?)
    }

    async fn find(&self, key: &ReservationKey) -> Result<Option<Reservation>, ReservationsError> {
        let now = self.now();
        Ok(self.book().reservation(key).map(|reservation| reservation.clone().seen_at(now)))
    }

    async fn set_capacity(&self, resource: &ResourceName, capacity: u64) -> Result<Resource, ReservationsError> {
        Ok(self.swept(|book, _| book.set_capacity(resource, capacity))?)
    }

    async fn resource(&self, name: &ResourceName) -> Result<Option<Resource>, ReservationsError> {
        Ok(self.book().resource(name).cloned())
    }
}

#[async_trait]
impl ReservationsStore for MemoryReservations {
    async fn expire_overdue(&self, limit: usize) -> Result<usize, ReservationsError> {
        let mut book = self.book();
        let count = book.expire_overdue(self.now(), limit);
        book.take_changes();
        Ok(count)
    }

    async fn prune(&self, keep: Duration, limit: usize) -> Result<usize, ReservationsError> {
        let keep = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
        let before = Timestamp(self.now().0.saturating_sub(keep));
        Ok(self.book().prune(before, limit))
    }

    async fn ping(&self) -> Result<(), ReservationsError> {
        Ok(())
    }
}

impl std::fmt::Debug for MemoryReservations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryReservations").field("book", &self.book).finish_non_exhaustive()
    }
}
