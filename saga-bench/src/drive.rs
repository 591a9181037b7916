//! Brings many sagas to their end, so many at once, as the callers of a service would.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use saga_core::store::Store;
use saga_core::{Outcome, Runtime, Saga, Tenant};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use crate::clock::Stopwatch;

/// How a saga is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Completed,
    Compensated,
    /// It is started, and the client does not wait for its end.
    Never,
}

/// What the callers saw.
#[derive(Debug)]
pub(crate) struct Driven {
    began: Stopwatch,
    /// From the first start to the last outcome that was waited for.
    pub(crate) took: Duration,
    /// When each saga that was waited for had ended, and how long it took.
    sagas: Vec<(Duration, Duration)>,
}

impl Driven {
    /// How long each saga took from its start to its outcome, in milliseconds.
    pub(crate) fn latencies_ms(&self) -> Vec<f64> {
        self.sagas.iter().map(|(_, took)| took.as_secs_f64() * 1e3).collect()
    }

    /// The longest time in which no saga ended.
    pub(crate) fn longest_pause(&self) -> Duration {
        self.gaps().into_iter().max().unwrap_or_default()
    }

    /// How long behind a saga the next one ended, in milliseconds.
    pub(crate) fn gaps_ms(&self) -> Vec<f64> {
        self.gaps().into_iter().map(|gap| gap.as_secs_f64() * 1e3).collect()
    }

    /// Where sagas run one after the other: how long behind the end of one the next one began, in milliseconds.
    pub(crate) fn hand_overs_ms(&self, begun: &[Stopwatch]) -> Vec<f64> {
        let mut begun: Vec<Duration> = begun.iter().map(|begun| self.began.until(*begun)).collect();
        begun.sort_unstable();
        let next = begun.into_iter().skip(1);
        next.zip(self.ends()).map(|(begun, ended)| begun.saturating_sub(ended).as_secs_f64() * 1e3).collect()
    }

    fn gaps(&self) -> Vec<Duration> {
        let ends: Vec<Duration> = std::iter::once(Duration::ZERO).chain(self.ends()).collect();
        ends.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect()
    }

    /// When the sagas ended, the first one first.
    fn ends(&self) -> Vec<Duration> {
        let mut ends: Vec<Duration> = self.sagas.iter().map(|(ended, _)| *ended).collect();
        ends.sort_unstable();
        ends
    }
}

/// Runs `sagas` sagas, each of which must complete, and says how long it took from the first start to the last outcome.
pub(crate) async fn drive<S: Store, I: Serialize + DeserializeOwned + Send + Sync + 'static>(
    runtime: &Runtime<S>,
    saga: &Saga<S, I>,
    sagas: u32,
    in_flight: u32,
    input: fn(u32) -> I,
) -> Result<Duration> {
    let runtimes = std::slice::from_ref(runtime);
    let driven = drive_to(runtimes, saga, 0..sagas, in_flight, None, input, |_| Expected::Completed).await?;
    Ok(driven.took)
}

/// Runs the sagas with these numbers, so many at a time, on the runtimes in turn. Each must end as expected of it. With a number of
/// tenants, each saga belongs to the next one of them.
pub(crate) async fn drive_to<S: Store, I: Serialize + DeserializeOwned + Send + Sync + 'static>(
    runtimes: &[Runtime<S>],
    saga: &Saga<S, I>,
    numbers: Range<u32>,
    in_flight: u32,
    tenants: Option<u32>,
    input: fn(u32) -> I,
    expected: fn(u32) -> Expected,
) -> Result<Driven> {
    let watch = Stopwatch::started();
    let next = Arc::new(AtomicU32::new(numbers.start));
    let callers = Callers { next, watch, end: numbers.end, tenants, input, expected };
    let mut calling = JoinSet::new();
    for (_, runtime) in (0..in_flight).zip(runtimes.iter().cycle()) {
        calling.spawn(callers.clone().call(runtime.clone(), saga.clone()));
    }
    let mut driven = Driven { began: watch, took: Duration::ZERO, sagas: Vec::new() };
    while let Some(caller) = calling.join_next().await {
        driven.sagas.extend(caller.context("a caller panicked")??);
    }
    driven.took = watch.elapsed();
    Ok(driven)
}

struct Callers<I> {
    next: Arc<AtomicU32>,
    watch: Stopwatch,
    end: u32,
    tenants: Option<u32>,
    input: fn(u32) -> I,
    expected: fn(u32) -> Expected,
}

impl<I> Clone for Callers<I> {
    fn clone(&self) -> Self {
        Self { next: Arc::clone(&self.next), ..*self }
    }
}

impl<I: Serialize + DeserializeOwned + Send + Sync + 'static> Callers<I> {
    /// One of the callers: it starts the next saga when the one before has ended.
    async fn call<S: Store>(self, runtime: Runtime<S>, saga: Saga<S, I>) -> Result<Vec<(Duration, Duration)>> {
        let mut ended = Vec::new();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.end {
                return Ok(ended);
            }
            let began = self.watch.elapsed();
            let (key, input) = (format!("order-{number}"), (self.input)(number));
            let running = match self.tenants {
                None => runtime.start(&saga, key, input).await?,
                Some(tenants) => {
                    let tenant = Tenant::new(format!("tenant-{}", number % tenants))?;
                    runtime.tenant(tenant).start(&saga, key, input).await?
                }
            };
            let expected = (self.expected)(number);
            if expected == Expected::Never {
                continue;
            }
            let outcome = running.outcome().await?;
            let is_as_expected = match &outcome {
                Outcome::Completed { .. } => expected == Expected::Completed,
                Outcome::Compensated { .. } => expected == Expected::Compensated,
                Outcome::Stuck { .. } | Outcome::Tombstone { .. } => false,
            };
            ensure!(is_as_expected, "order {number} ended as {outcome}");
            let now = self.watch.elapsed();
            ended.push((now, now.saturating_sub(began)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order in which callers report their sagas does not matter, and neither does that of the first steps.
    #[test]
    fn a_hand_over_is_from_an_end_to_the_next_beginning() {
        let began = Stopwatch::started();
        let first = Stopwatch::started();
        let second = loop {
            let now = Stopwatch::started();
            if first.until(now) >= Duration::from_millis(2) {
                break now;
            }
        };
        let ends = [began.until(second) + Duration::from_secs(1), began.until(first) + Duration::from_millis(1)];
        let driven = Driven { began, took: ends[0], sagas: ends.map(|ended| (ended, Duration::ZERO)).to_vec() };
        let expected = first.until(second).saturating_sub(Duration::from_millis(1));
        let [measured] = driven.hand_overs_ms(&[second, first])[..] else { panic!("there is one hand-over") };
        assert!((measured - expected.as_secs_f64() * 1e3).abs() < 1e-6, "{measured} ms instead of {expected:?}");
    }
}
