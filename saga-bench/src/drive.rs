//! Brings many sagas to their end, so many at once, as the callers of a service would.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use saga_core::store::Store;
use saga_core::{Outcome, Runtime, Saga};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use crate::clock::Stopwatch;

/// Runs `sagas` sagas, each of which must complete, and says how long it took from the first start to the last outcome.
pub(crate) async fn drive<S: Store, I: Serialize + DeserializeOwned + Send + Sync + 'static>(
    runtime: &Runtime<S>,
    saga: &Saga<S, I>,
    sagas: u32,
    in_flight: u32,
    input: fn(u32) -> I,
) -> Result<Duration> {
    let next = Arc::new(AtomicU32::new(0));
    let watch = Stopwatch::started();
    let mut callers = JoinSet::new();
    for _ in 0..in_flight {
        callers.spawn(call(runtime.clone(), saga.clone(), Arc::clone(&next), sagas, input));
    }
    while let Some(caller) = callers.join_next().await {
        caller.context("a caller panicked")??;
    }
    Ok(watch.elapsed())
}

/// One of the callers: it starts the next saga when the one before has ended.
async fn call<S: Store, I: Serialize + DeserializeOwned + Send + Sync + 'static>(
    runtime: Runtime<S>,
    saga: Saga<S, I>,
    next: Arc<AtomicU32>,
    sagas: u32,
    input: fn(u32) -> I,
) -> Result<()> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= sagas {
            return Ok(());
        }
        let running = runtime.start(&saga, format!("order-{number}"), input(number)).await?;
        let outcome = running.outcome().await?;
        ensure!(matches!(outcome, Outcome::Completed { .. }), "order {number} ended as {outcome}");
    }
}
