//! A night with much to settle: the steps that report, and who looks at them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::engine::StepStatus;
use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryStore};
use saga_core::store::{Sagas as _, StoreError, StoreErrorKind};
use saga_core::{Key, Outcome, Runtime, Saga, Settings, State, StepContext, StepError, Tenant, saga_step};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) rows: u32,
}

/// What the calls read, and what they are to do.
#[derive(Clone, Default)]
pub(crate) struct Night(pub(crate) Arc<Inside>);

#[derive(Default)]
pub(crate) struct Inside {
    /// What each call read, by its key.
    pub(crate) read: Mutex<Vec<(String, Option<u32>)>>,
    /// After how many rows the first attempt of each step ends, and how.
    pub(crate) breaks: Mutex<BTreeMap<u32, Break>>,
    pub(crate) stands: Notify,
    pub(crate) given_up: Mutex<u32>,
}

#[derive(Clone, Copy)]
pub(crate) enum Break {
    Fails,
    Panics,
    Rejects,
    Hangs,
}

impl Night {
    pub(crate) fn breaking(breaks: &[(u32, Break)]) -> Self {
        let night = Self::default();
        night.0.breaks.lock().unwrap().extend(breaks.iter().copied());
        night
    }

    pub(crate) fn read(&self) -> Vec<Option<u32>> {
        self.0.read.lock().unwrap().iter().map(|(_, read)| *read).collect()
    }

    /// Goes on where the last attempt was, row by row, and reports each.
    pub(crate) async fn settle(&self, ctx: &StepContext, rows: u32, pause: Duration) -> Result<u32, StepError> {
        let begun = ctx.progress::<Progress>()?.map(|progress| progress.rows);
        self.0.read.lock().unwrap().push((ctx.key().to_owned(), begun));
        for row in begun.unwrap_or(0) + 1..=rows {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            ctx.report(&Progress { rows: row })?;
            let broken = self.0.breaks.lock().unwrap().remove(&row);
            match broken {
                Some(Break::Fails) => return Err(StepError::retry("the line broke")),
                Some(Break::Panics) => panic!("the line broke"),
                Some(Break::Rejects) => return Err(StepError::reject("the books are closed")),
                Some(Break::Hangs) => {
                    self.0.stands.notify_one();
                    ctx.cancelled().await;
                    *self.0.given_up.lock().unwrap() += 1;
                    return Err(StepError::retry("given up"));
                }
                None => {}
            }
        }
        Ok(rows - begun.unwrap_or(0))
    }
}

#[saga_step(
    no_compensation,
    timeout = "20s",
    retry(attempts = 4, base = "2s", cap = "2s"),
    on_exhausted = "compensate"
)]
pub(crate) async fn settle(ctx: &StepContext, rows: u32, State(night): State<Night>) -> Result<u32, StepError> {
    night.settle(ctx, rows, Duration::ZERO).await
}

#[saga_step(
    no_compensation,
    timeout = "20s",
    retry(attempts = 4, base = "2s", cap = "2s"),
    on_exhausted = "compensate"
)]
pub(crate) async fn slowly(ctx: &StepContext, rows: u32, State(night): State<Night>) -> Result<u32, StepError> {
    night.settle(ctx, rows, Duration::from_millis(10)).await
}

#[saga_step(
    exclusive,
    no_compensation,
    timeout = "1h",
    retry(attempts = 4, base = "2s", cap = "2s"),
    on_exhausted = "compensate"
)]
pub(crate) async fn all_night(ctx: &StepContext, rows: u32, State(night): State<Night>) -> Result<u32, StepError> {
    night.settle(ctx, rows, Duration::from_millis(500)).await
}

pub(crate) fn nightly<T>(step: impl FnOnce(saga_core::saga::SagaBuilder<MemoryStore, u32>) -> T) -> T {
    step(Saga::named("nightly").input::<u32>())
}

pub(crate) fn settling() -> Saga<MemoryStore, u32> {
    nightly(|saga| saga.step::<settle>().build().unwrap())
}

pub(crate) async fn replica(store: &MemoryStore, saga: &Saga<MemoryStore, u32>, night: &Night) -> Runtime<MemoryStore> {
    let settings = |settings: &mut Settings| {
        settings.lease_ttl = LEASE;
        settings.report_interval = INTERVAL;
    };
    let builder = Runtime::builder(store.clone()).saga(saga).state(night.clone()).settings(settings);
    builder.start().await.unwrap()
}

/// What the store has of the only step that is under way, by number and report.
pub(crate) async fn kept(store: &MemoryStore, key: &str) -> Option<(u64, Progress)> {
    let stored = store.saga_with_steps(&Tenant::default(), &Key::new(key).unwrap()).await.unwrap().unwrap();
    let reported = stored.work.first()?.reported.clone()?;
    Some((reported.number, serde_json::from_slice(&reported.progress).unwrap()))
}

pub(crate) async fn status(runtime: &Runtime<MemoryStore>, key: &str) -> Vec<StepStatus> {
    runtime.admin().query().status(key).await.unwrap().unwrap().steps
}

pub(crate) fn assert_completed(outcome: &Outcome) {
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
}

/// Counts the calls of the store by name, and lets some fail.
#[derive(Default)]
pub(crate) struct Meter {
    pub(crate) counts: Mutex<BTreeMap<&'static str, u32>>,
    pub(crate) failing: Mutex<u32>,
    /// Whether the process that has it is dead: no call of the store comes back.
    pub(crate) is_dead: Mutex<bool>,
}

pub(crate) fn metered(meter: &Arc<Meter>) -> MemoryStore {
    MemoryStore::new().with_commit_hook(Arc::<Meter>::clone(meter))
}

impl Meter {
    pub(crate) fn count(&self, operation: &str) -> u32 {
        self.counts.lock().unwrap().get(operation).copied().unwrap_or(0)
    }
}

impl CommitHook for Meter {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        if *self.is_dead.lock().unwrap() {
            return Box::pin(std::future::pending());
        }
        let mut fate = CommitFate::Proceed;
        if let CommitPoint::Committing(operation) = point {
            *self.counts.lock().unwrap().entry(operation).or_default() += 1;
            let mut failing = self.failing.lock().unwrap();
            if operation == "report" && *failing > 0 {
                *failing -= 1;
                fate = CommitFate::Fail(StoreError::new(StoreErrorKind::Unavailable, "report", "the disk is away"));
            }
        }
        Box::pin(std::future::ready(fate))
    }
}
