//! The floor: tasks that call the functions one after the other, with nothing in between.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;

use super::work::{charge, confirm, order, reserve};
use crate::clock::Stopwatch;

/// Calls the functions of `sagas` sagas, each saga in a task of its own and so many at a time.
pub(super) async fn run(sagas: u32, in_flight: u32) -> Result<Duration> {
    let next = Arc::new(AtomicU32::new(0));
    let watch = Stopwatch::started();
    let mut callers = JoinSet::new();
    for _ in 0..in_flight {
        let next = Arc::clone(&next);
        callers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= sagas {
                    return Ok::<_, anyhow::Error>(());
                }
                tokio::spawn(one(number)).await.context("a function panicked")?;
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.context("a caller panicked")??;
    }
    Ok(watch.elapsed())
}

async fn one(number: u32) {
    let order = order(number);
    black_box(reserve(order.clone()).await);
    black_box(charge(order.clone()).await);
    black_box(confirm(order).await);
}
