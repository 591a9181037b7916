//! What a store of reservations does.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;

use crate::book::{InvalidName, Operation, Refusal, Reservation, ReservationKey, Resource, ResourceName};

/// Reservations, wherever they are kept: in memory, in a database, or behind a server.
///
/// # Contract
/// - `R-CAPACITY` `confirmed + held <= capacity` holds for each resource in every committed state. Where holds are in a Redis
///   that lost them, `confirmed <= capacity` holds.
/// - `R-DURABLE` What was answered as confirmed stays so until it is given back.
/// - `R-ONCE` The units of a reservation come back once, however often it is released, given back or swept.
/// - `R-TOKEN` The tokens of a resource grow with each reservation. An operation with another token than that of the
///   reservation changes nothing.
/// - `R-EXPIRY` From `expires_at` on, by the store's clock and under the lock of the resources, a confirmation that does not
///   ask for [`Late::IfFree`](crate::Late::IfFree) is refused. A sweep that was late or never came makes no difference.
/// - `R-KEY` One key is one reservation: a repeated operation has one effect and the same answer.
/// - `R-ALL` The lines of a reservation are taken all or none.
/// - `R-FAIR` A request is refused for lack of units only if they are taken by reservations that are confirmed, or held and
///   not yet expired.
///
/// # Cancel safety
/// A dropped call takes effect whole or not at all, and it is unknown which. Repeat it: the key finds what it did.
#[async_trait]
pub trait Reservations: Send + Sync + 'static {
    /// Does something with the reservation of a key.
    ///
    /// # Errors
    /// When it is refused, and when the store does not answer.
    async fn perform(&self, operation: Operation) -> Result<Reservation, ReservationsError>;

    /// The reservation of a key, as it is now.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn find(&self, key: &ReservationKey) -> Result<Option<Reservation>, ReservationsError>;

    /// Sets how many units there are of a resource, and makes the resource if there is none.
    ///
    /// # Errors
    /// When more is taken, or the resource is that of a unique intent; and when the store does not answer.
    async fn set_capacity(&self, resource: &ResourceName, capacity: u64) -> Result<Resource, ReservationsError>;

    /// A resource, as it is now.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn resource(&self, name: &ResourceName) -> Result<Option<Resource>, ReservationsError>;
}

/// What a store does besides for the process that keeps it in order.
///
/// # Cancel safety
/// That of [`Reservations`].
#[async_trait]
pub trait ReservationsStore: Reservations {
    /// Writes down that holds are over, for up to `limit` of them, and returns for how many. It is only tidy: holds end by
    /// the clock.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn expire_overdue(&self, limit: usize) -> Result<usize, ReservationsError>;

    /// Forgets up to `limit` reservations that ended longer ago than `keep`, and returns how many. Their keys are new again.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn prune(&self, keep: Duration, limit: usize) -> Result<usize, ReservationsError>;

    /// Whether the store answers.
    ///
    /// # Errors
    /// When it does not.
    async fn ping(&self) -> Result<(), ReservationsError>;
}

/// Why an operation has no answer, or another one than was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReservationsError {
    /// It was refused, and changed nothing.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store or the server did not answer. The operation may have taken effect: repeat it with the same key.
    #[error(
        "cannot {operation}: the reservations do not answer, and it may have taken effect; repeat it with the same key"
    )]
    Unavailable {
        /// What was to be done.
        operation: &'static str,
        /// What went wrong.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl ReservationsError {
    /// An error of the database or of the connection.
    pub(crate) fn unavailable(operation: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable { operation, source: source.into() }
    }

    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Unavailable { .. } => None,
        }
    }
}

impl From<InvalidName> for ReservationsError {
    fn from(error: InvalidName) -> Self {
        Self::Refused(error.into())
    }
}
