use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use super::held::Held;
use crate::ReservationsError;
use crate::book::{
    Action, FencingToken, InvalidName, Late, Operation, Reservation, ReservationKey, Reserve, Resource, ResourceName,
};
use crate::contract::Reservations;

/// Reserves, in this process or at a server. It is cheap to clone.
///
/// Every call may be repeated with the same key: it has one effect.
///
/// # Examples
/// ```
/// use saga_reservations::{MemoryReservations, Reason, ReservationsClient, Reserve};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A unique intent, and long work under a heartbeat. At a server: `ReservationsClient::connect("http://127.0.0.1:50051")`.
/// let client = ReservationsClient::new(MemoryReservations::current()?);
/// let held = client.reserve(Reserve::unique("signup", "ada@example.org").key("session-1").ttl_secs(30)).await?;
/// let rows = held.keep_while(async { 42 }).await?;
/// assert_eq!(rows, 42);
/// held.confirm().await?;
///
/// let twice = client.reserve(Reserve::unique("signup", "ada@example.org").key("session-2")).await.unwrap_err();
/// assert_eq!(twice.refusal().map(|refusal| refusal.reason()), Some(Reason::Duplicate));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ReservationsClient {
    reservations: Arc<dyn Reservations>,
}

impl ReservationsClient {
    /// A client of reservations that this process keeps.
    pub fn new(reservations: impl Reservations) -> Self {
        Self { reservations: Arc::new(reservations) }
    }

    /// A client of a server, such as `http://127.0.0.1:50051`. The server need not run yet.
    ///
    /// # Errors
    /// When the address is none.
    ///
    /// # Cancel safety
    /// Dropping it has no effect.
    #[cfg(feature = "client")]
    pub async fn connect(url: &str) -> Result<Self, ReservationsError> {
        Ok(Self::new(crate::grpc::RemoteReservations::connect(url)?))
    }

    /// Reserves. Without a key in the request a new one is drawn, and a call without an answer cannot be repeated.
    ///
    /// # Errors
    /// When it is refused, and when the reservations do not answer.
    ///
    /// # Cancel safety
    /// That of [`Reservations`].
    pub async fn reserve(&self, request: Reserve) -> Result<Held, ReservationsError> {
        let key = match request.given_key()? {
            Some(key) => key,
            None => random_key()?,
        };
        let ttl = request.time_to_live();
        let reservation = self.perform(key, Action::Reserve(request)).await?;
        Ok(Held::new(Arc::clone(&self.reservations), reservation, ttl))
    }

    /// Confirms a hold.
    ///
    /// # Errors
    /// When it is refused, and when the reservations do not answer.
    ///
    /// # Cancel safety
    /// That of [`Reservations`].
    pub async fn confirm(
        &self,
        key: ReservationKey,
        token: FencingToken,
        late: Late,
    ) -> Result<Reservation, ReservationsError> {
        self.perform(key, Action::Confirm { token, late }).await
    }

    /// Releases a hold. Without a token it also bars a request for the key that is still on its way.
    ///
    /// # Errors
    /// When it is refused, and when the reservations do not answer.
    ///
    /// # Cancel safety
    /// That of [`Reservations`].
    pub async fn release(
        &self,
        key: ReservationKey,
        token: Option<FencingToken>,
    ) -> Result<Reservation, ReservationsError> {
        self.perform(key, Action::Release { token }).await
    }

    /// Extends a hold to `ttl` from now.
    ///
    /// # Errors
    /// When it is refused, and when the reservations do not answer.
    ///
    /// # Cancel safety
    /// That of [`Reservations`].
    pub async fn extend(
        &self,
        key: ReservationKey,
        token: FencingToken,
        ttl: Duration,
    ) -> Result<Reservation, ReservationsError> {
        self.perform(key, Action::Extend { token, ttl }).await
    }

    /// Gives the units of a confirmed reservation back.
    ///
    /// # Errors
    /// When it is refused, and when the reservations do not answer.
    ///
    /// # Cancel safety
    /// That of [`Reservations`].
    pub async fn give_back(&self, key: ReservationKey, token: FencingToken) -> Result<Reservation, ReservationsError> {
        self.perform(key, Action::GiveBack { token }).await
    }

    /// The reservation of a key.
    ///
    /// # Errors
    /// When the reservations do not answer.
    ///
    /// # Cancel safety
    /// Dropping it has no effect.
    pub async fn find(&self, key: &ReservationKey) -> Result<Option<Reservation>, ReservationsError> {
        self.reservations.find(key).await
    }

    /// Sets how many units there are of a resource.
    ///
    /// # Errors
    /// When it is refused, and when the reservations do not answer.
    ///
    /// # Cancel safety
    /// That of [`Reservations`].
    pub async fn set_capacity(&self, resource: &str, capacity: u64) -> Result<Resource, ReservationsError> {
        self.reservations.set_capacity(&ResourceName::new(resource)?, capacity).await
    }

    /// A resource.
    ///
    /// # Errors
    /// When the reservations do not answer.
    ///
    /// # Cancel safety
    /// Dropping it has no effect.
    pub async fn resource(&self, name: &str) -> Result<Option<Resource>, ReservationsError> {
        self.reservations.resource(&ResourceName::new(name)?).await
    }

    pub(crate) async fn perform(&self, key: ReservationKey, action: Action) -> Result<Reservation, ReservationsError> {
        self.reservations.perform(Operation::new(key, action)).await
    }
}

impl fmt::Debug for ReservationsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReservationsClient").finish_non_exhaustive()
    }
}

/// A key that no other client has: 128 bits, drawn from the standard library's randomly keyed hasher.
fn random_key() -> Result<ReservationKey, InvalidName> {
    let state = (RandomState::new(), RandomState::new());
    ReservationKey::new(format!("{:016x}{:016x}", state.0.hash_one(0_u8), state.1.hash_one(1_u8)))
}
