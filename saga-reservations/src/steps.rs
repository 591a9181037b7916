//! Steps of sagas that reserve and confirm, with their compensations and resolutions. They need a
//! [`ReservationsClient`] as a state of the runtime.
//!
//! | step | undone by | asked about by |
//! |---|---|---|
//! | [`reserve`](fn@reserve): holds what its [`Reserve`] says, under the key of the step | [`release`](fn@release) | [`find_reservation`](fn@find_reservation) |
//! | [`confirm`](fn@confirm): makes the hold final, and takes the units again if it came late | [`give_back`](fn@give_back) | [`find_confirmation`](fn@find_confirmation) |
//!
//! A refusal rejects the step, so the saga compensates; [`Rejection::details`](saga_core::step::Rejection::details) has the
//! [`Refusal`](crate::Refusal). When the reservations do not answer, the step is tried again under the same key.
//!
//! # Cancel safety
//! The runtime repeats a step that was dropped, under the same key.
//!
//! # Examples
//! ```
//! use saga_core::memory::MemoryStore;
//! use saga_core::{Outcome, Output, Runtime, Saga, StepError, saga_step};
//! use saga_reservations::{MemoryReservations, Reserve, ReservationsClient, steps as reservations};
//!
//! #[saga_step(no_compensation)]
//! async fn charge_card(cents: u64) -> Result<(), StepError> {
//!     if cents > 50_000 { Err(StepError::reject("too expensive")) } else { Ok(()) }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = ReservationsClient::new(MemoryReservations::current()?);
//! client.set_capacity("seat/LH-400", 2).await?;
//! let book_trip: Saga<MemoryStore, u64> = Saga::named("book-trip").input::<u64>()
//!     .step_from::<reservations::reserve, _>(|_: &u64| Reserve::of("seat/LH-400", 1).ttl_mins(15))
//!     .step::<charge_card>()
//!     .step_from::<reservations::confirm, _>(|_: &u64, Output(held): Output<reservations::reserve>| held.clone())
//!     .pivot()
//!     .build()?;
//! let runtime = Runtime::builder(MemoryStore::new()).saga(&book_trip).state(client.clone()).start().await?;
//! let refused = runtime.start(&book_trip, "trip-1", 90_000).await?.outcome().await?;
//! assert!(matches!(refused, Outcome::Compensated { .. }));
//! let booked = runtime.start(&book_trip, "trip-2", 12_000).await?.outcome().await?;
//! assert!(matches!(booked, Outcome::Completed { .. }));
//! let seats = client.resource("seat/LH-400").await?.ok_or("no seats")?;
//! assert_eq!((seats.confirmed, seats.held), (1, 0));
//! # runtime.shutdown().await;
//! # Ok(())
//! # }
//! ```

use saga_core::{
    IntoStepError, Resolved, State, StepContext, StepError, saga_compensation, saga_resolution, saga_step,
};

use crate::ReservationsError;
use crate::book::{Action, Late, Reason, Reservation, ReservationKey, Reserve, State as Phase};
use crate::client::ReservationsClient;

/// Holds what the request says. Its key is that of the request if it has one, and otherwise that of the step.
///
/// # Cancel safety
/// The runtime repeats a step that was dropped, under the same key.
#[saga_step(compensate = release, resolve = find_reservation)]
pub async fn reserve(
    ctx: &StepContext,
    request: Reserve,
    State(client): State<ReservationsClient>,
) -> Result<Reservation, StepError> {
    let key = key_of(ctx, &request)?;
    client.perform(key, Action::Reserve(request)).await.map_err(IntoStepError::into_step_error)
}

/// Undoes [`reserve`](fn@reserve). Where it is unknown whether the hold was made, a request that is still on its way is barred.
///
/// # Cancel safety
/// That of [`reserve`](fn@reserve).
#[saga_compensation]
pub async fn release(
    ctx: &StepContext,
    request: Reserve,
    held: Option<Reservation>,
    State(client): State<ReservationsClient>,
) -> Result<(), StepError> {
    let key = key_of(ctx, &request)?;
    let released = client.release(key.clone(), held.map(|held| held.first_token)).await;
    match reason_of(&released) {
        // A confirmation arrived after its own compensation had found nothing to give back.
        Some(Reason::WrongState) => give_back_confirmed(&client, &key).await,
        // It ended so long ago that it was pruned.
        Some(Reason::NotFound) => Ok(()),
        _ => released.map(drop).map_err(IntoStepError::into_step_error),
    }
}

/// What became of [`reserve`](fn@reserve).
///
/// # Cancel safety
/// Dropping it has no effect.
#[saga_resolution]
pub async fn find_reservation(
    ctx: &StepContext,
    request: Reserve,
    State(client): State<ReservationsClient>,
) -> Result<Resolved<Reservation>, StepError> {
    let found = client.find(&key_of(ctx, &request)?).await?;
    // What was released or has expired is no output to go on with: the step is called, and is refused.
    let held = found.filter(|found| matches!(found.state, Phase::Held | Phase::Confirmed));
    Ok(held.map_or(Resolved::NotDone, Resolved::Done))
}

/// Makes a hold final: its input is the output of [`reserve`](fn@reserve). A hold that has expired takes the units again, under
/// a new token, if they are free; undoing the steps in between would mostly be worse.
///
/// # Cancel safety
/// That of [`reserve`](fn@reserve).
#[saga_step(compensate = give_back, resolve = find_confirmation)]
pub async fn confirm(held: Reservation, State(client): State<ReservationsClient>) -> Result<Reservation, StepError> {
    client.confirm(held.key, held.first_token, Late::IfFree).await.map_err(IntoStepError::into_step_error)
}

/// Undoes [`confirm`](fn@confirm).
///
/// # Cancel safety
/// That of [`reserve`](fn@reserve).
#[saga_compensation]
pub async fn give_back(held: Reservation, State(client): State<ReservationsClient>) -> Result<(), StepError> {
    give_back_confirmed(&client, &held.key).await
}

/// What became of [`confirm`](fn@confirm).
///
/// # Cancel safety
/// Dropping it has no effect.
#[saga_resolution]
pub async fn find_confirmation(
    held: Reservation,
    State(client): State<ReservationsClient>,
) -> Result<Resolved<Reservation>, StepError> {
    let found = client.find(&held.key).await?;
    let confirmed = found.filter(|found| found.state == Phase::Confirmed);
    Ok(confirmed.map_or(Resolved::NotDone, Resolved::Done))
}

/// A refusal rejects the step, and every other error is tried again: it is unknown whether the operation took effect.
impl IntoStepError for ReservationsError {
    fn into_step_error(self) -> StepError {
        match self {
            Self::Refused(refusal) => StepError::reject_with(refusal),
            unavailable @ Self::Unavailable { .. } => StepError::retry(unavailable),
        }
    }
}

/// An invalid key rejects the step: it would be invalid the next time too.
fn key_of(ctx: &StepContext, request: &Reserve) -> Result<ReservationKey, StepError> {
    let key = match request.given_key() {
        Ok(None) => ReservationKey::new(ctx.original_key()),
        Ok(Some(key)) => Ok(key),
        Err(error) => Err(error),
    };
    key.map_err(|error| ReservationsError::from(error).into_step_error())
}

async fn give_back_confirmed(client: &ReservationsClient, key: &ReservationKey) -> Result<(), StepError> {
    match client.find(key).await? {
        Some(found) if found.state == Phase::Confirmed => {
            client.give_back(found.key, found.token).await.map_err(IntoStepError::into_step_error)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn reason_of<T>(answer: &Result<T, ReservationsError>) -> Option<Reason> {
    answer.as_ref().err().and_then(ReservationsError::refusal).map(crate::book::Refusal::reason)
}
