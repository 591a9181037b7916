//! What the clients do.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use saga_reservations::{Action, Late, Operation, Reservation, ReservationKey, Reserve};
use tokio::task::JoinSet;

use super::contender::Contender;
use crate::clock::Stopwatch;

/// A request is held and then confirmed.
pub(super) const OPERATIONS_PER_REQUEST: u32 = 2;

/// Over how many resources the requests are spread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread(pub(super) u32);

impl Spread {
    pub(super) fn resource(self, number: u32) -> String {
        format!("seat/{}", number % self.0)
    }
}

/// Runs so many requests, so many at once. The keys begin with `prefix`, which is used once.
pub(super) async fn drive(
    contender: &Contender,
    spread: Spread,
    prefix: &str,
    requests: u32,
    in_flight: u32,
) -> Result<Duration> {
    let (contender, prefix) = (contender.clone(), Arc::<str>::from(prefix));
    at_once(requests, in_flight, move |number| {
        let (contender, prefix) = (contender.clone(), Arc::clone(&prefix));
        async move {
            let key = ReservationKey::new(format!("{prefix}-{number}"))?;
            let reserve = Action::Reserve(Reserve::of(spread.resource(number), 1));
            let held: Reservation = contender.perform(Operation::new(key.clone(), reserve)).await?;
            let confirm = Action::Confirm { token: held.token, late: Late::Refuse };
            contender.perform(Operation::new(key, confirm)).await?;
            Ok(())
        }
    })
    .await
}

/// Calls it with each number, so many at once, and says how long that took.
pub(super) async fn at_once<F: Future<Output = Result<()>> + Send + 'static>(
    calls: u32,
    in_flight: u32,
    call: impl Fn(u32) -> F + Clone + Send + Sync + 'static,
) -> Result<Duration> {
    let watch = Stopwatch::started();
    let next = Arc::new(AtomicU32::new(0));
    let mut clients: JoinSet<Result<()>> = JoinSet::new();
    for _ in 0..in_flight {
        let (next, call) = (Arc::clone(&next), call.clone());
        clients.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= calls {
                    return Ok(());
                }
                call(number).await?;
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.context("a client panicked")??;
    }
    Ok(watch.elapsed())
}
