//! The same payment twice: with the key in the database, and with Redis asked before the database.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::body::to_bytes;
use axum::http::StatusCode;
use axum::response::Response;
use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::clock::Stopwatch;
use crate::http::payment;

/// A duplicate repeats a request that was sent so many requests before: its response was kept by then.
pub(super) const AGE: u32 = 512;
/// How long Redis keeps a response.
const TTL_SECONDS: u64 = 3_600;
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Where requests go.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// Each is a process with a pool of its own. A duplicate goes to another one than the first request.
    pub(super) processes: Vec<Router>,
    /// Asked first, if it is there.
    pub(super) redis: Option<MultiplexedConnection>,
}

impl Route {
    /// Sends so many requests of a stream with such a share of duplicates, so many at once, and says how long that took.
    /// Those that the first duplicates repeat are sent before, with the numbers from `start` on.
    pub(super) async fn drive(&self, start: u32, requests: u32, percent: u32, in_flight: u32) -> Result<Duration> {
        self.send_all(start..start + AGE, start, percent, in_flight).await?;
        let watch = Stopwatch::started();
        self.send_all(start + AGE..start + AGE + requests, start, percent, in_flight).await?;
        Ok(watch.elapsed())
    }

    async fn send_all(&self, numbers: Range<u32>, start: u32, percent: u32, in_flight: u32) -> Result<()> {
        let next = Arc::new(AtomicU32::new(numbers.start));
        let mut clients: JoinSet<Result<()>> = JoinSet::new();
        for _ in 0..in_flight {
            let (mut route, next, end) = (self.clone(), Arc::clone(&next), numbers.end);
            clients.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end {
                        return Ok(());
                    }
                    let first = first_of(number, start, percent);
                    route.send(first, first != number).await?;
                }
            });
        }
        while let Some(ended) = clients.join_next().await {
            ended.context("a client panicked")??;
        }
        Ok(())
    }

    /// Sends one request, to another process if it is a duplicate.
    pub(super) async fn send(&mut self, number: u32, is_duplicate: bool) -> Result<()> {
        let process = number as usize + usize::from(is_duplicate);
        let app = self.processes[process % self.processes.len()].clone();
        let Some(redis) = &mut self.redis else { return answered(&app, number).await.map(drop) };
        let key = format!("response:ada:payment-{number}");
        let known: Option<Vec<u8>> = redis.get(&key).await?;
        if let Some(known) = known {
            ensure!(known.starts_with(b"{"), "Redis has another response");
            return Ok(());
        }
        let body = to_bytes(answered(&app, number).await?.into_body(), BODY_BYTES_MAX).await?;
        // Behind the commit, and the client does not wait for it.
        let mut redis = redis.clone();
        tokio::spawn(async move {
            let kept: redis::RedisResult<()> = redis.set_ex(key, &body[..], TTL_SECONDS).await;
            kept
        });
        Ok(())
    }
}

/// Sends a request again while another one with its key is in flight.
async fn answered(app: &Router, number: u32) -> Result<Response> {
    loop {
        let response = app.clone().oneshot(payment("/keyed", number)?).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        ensure!(response.status() == StatusCode::CONFLICT, "a request was answered with {}", response.status());
        tokio::task::yield_now().await;
    }
}

/// The number of the first request under the key of this one: its own, unless it is a duplicate.
fn first_of(mut number: u32, start: u32, percent: u32) -> u32 {
    // Spread evenly, the same in each run.
    let is_duplicate = |number: u32| number.wrapping_mul(2_654_435_761) / 0x0100_0000 * 100 / 256 < percent;
    while number >= start + AGE && is_duplicate(number) {
        number -= AGE;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::{AGE, first_of};

    #[test]
    fn a_stream_has_its_share_of_duplicates() {
        for percent in [0, 1, 10, 50] {
            let duplicates = (10_000..30_000).filter(|number| first_of(*number, 0, percent) != *number).count();
            let wanted = 200 * percent as usize;
            assert!(duplicates.abs_diff(wanted) <= 200, "{duplicates} for {percent} %");
        }
        assert_eq!(first_of(AGE - 1, 0, 100), AGE - 1, "nothing was sent that it could repeat");
    }
}
