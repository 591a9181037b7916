//! Callers that start sagas, as those of a service do: as many at once as may be in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, ensure};
use tokio::task::JoinSet;

use crate::job::Job;
use crate::remaining::Remaining;
use crate::work::Order;

/// Calls all sagas of the job; `call` starts one, waits for its end and says whether the order was confirmed.
///
/// # Errors
/// A call failed, or a saga ended the other way than its order asks for, or none ended for a whole minute.
pub async fn call_all<F, Called>(job: &Job, call: F) -> Result<()>
where
    F: Fn(Order) -> Called + Clone + Send + Sync + 'static,
    Called: Future<Output = Result<bool>> + Send + 'static,
{
    let remaining = Remaining::of(job);
    let ended = remaining.clone();
    let called = start_all(job, move |order| {
        let (called, ended) = (call(order), ended.clone());
        async move {
            let is_confirmed = called.await?;
            ensure!(is_confirmed != order.is_declined, "it ended the wrong way: confirmed is {is_confirmed}");
            ended.ended();
            Ok(())
        }
    });
    tokio::select! {
        biased;
        called = called => called,
        stalled = stalled(&remaining) => stalled,
    }
}

/// Starts all sagas of the job; `start` starts one, and need not wait for its end.
///
/// # Errors
/// A saga could not be started.
pub async fn start_all<F, Started>(job: &Job, start: F) -> Result<()>
where
    F: Fn(Order) -> Started + Clone + Send + Sync + 'static,
    Started: Future<Output = Result<()>> + Send + 'static,
{
    let next = Arc::new(AtomicU32::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..job.in_flight {
        callers.spawn(start_some(job.clone(), start.clone(), Arc::clone(&next)));
    }
    while let Some(caller) = callers.join_next().await {
        caller.context("a caller panicked")??;
    }
    Ok(())
}

/// One of the callers: it starts the next saga when it is through with the one before.
async fn start_some<F, Started>(job: Job, start: F, next: Arc<AtomicU32>) -> Result<()>
where
    F: Fn(Order) -> Started + Send + Sync,
    Started: Future<Output = Result<()>> + Send,
{
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= job.sagas {
            return Ok(());
        }
        start(job.order(number)).await.with_context(|| format!("the saga of order {number} failed"))?;
    }
}

/// Ends only with the error that nothing goes on.
async fn stalled(remaining: &Remaining) -> Result<()> {
    remaining.wait().await?;
    std::future::pending().await
}
