//! A hold is extended while work goes on.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::ReservationsError;
use crate::book::{Reservation, ReservationKey};

/// The hold ended while work went on under it, so the work was dropped.
#[derive(Debug, thiserror::Error)]
#[error("the hold {key} is lost, and the work under it was dropped; reserve again under a new key")]
pub struct HoldLost {
    key: String,
    source: ReservationsError,
}

/// Runs the work, and extends the hold meanwhile.
pub(super) async fn keep_while<F, E>(
    key: &ReservationKey,
    ttl: Duration,
    extend: impl Fn() -> E,
    work: F,
) -> Result<F::Output, HoldLost>
where
    F: Future,
    E: Future<Output = Result<Reservation, ReservationsError>>,
{
    let mut work = pin!(work);
    let mut heartbeat = pin!(beat(ttl, extend));
    tokio::select! {
        biased;
        output = &mut work => Ok(output),
        source = &mut heartbeat => Err(HoldLost { key: key.to_string(), source }),
    }
}

/// Extends the hold until that fails for good.
///
/// Time is measured from before the request was sent, so the hold here is over no later than at the server.
async fn beat<E>(ttl: Duration, extend: impl Fn() -> E) -> ReservationsError
where
    E: Future<Output = Result<Reservation, ReservationsError>>,
{
    let pause = ttl / 3;
    let mut ends_at = Instant::now() + ttl;
    // At once: the request may have been a repeated one, so that the hold is older than it seems.
    loop {
        let asked_at = Instant::now();
        match tokio::time::timeout_at(ends_at, extend()).await {
            Ok(Ok(_)) => ends_at = asked_at + ttl,
            Ok(Err(error @ ReservationsError::Refused(_))) => return error,
            Ok(Err(error)) if Instant::now() >= ends_at => return error,
            Ok(Err(error)) => tracing::warn!(%error, "a hold could not be extended; it is tried again"),
            Err(elapsed) => return ReservationsError::unavailable("extend a hold", elapsed),
        }
        sleep_until(asked_at + pause).await;
    }
}
