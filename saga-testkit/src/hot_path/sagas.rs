#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fmt;
use std::time::Duration;

use saga_core::store::Store;
use saga_core::{Outcome, Runtime, Saga, Settings, Tenant};
use tokio::task::JoinSet;

/// Nothing of the runtime's own falls into what is measured.
const QUIET: Duration = Duration::from_hours(6);
/// After so many sagas without a failure their steps need no savepoints.
const SPARED_AFTER: u32 = 600;

/// Whole sagas through the runtime, with one transaction under way at a time: the callers wait for each other, so that the
/// batches are the same in every run.
pub struct WholeSagas<S: Store> {
    runtime: Runtime<S>,
    saga: Saga<S, i64>,
    in_flight: u32,
    run: u32,
    tenants: Option<u32>,
}

impl<S: Store> WholeSagas<S> {
    /// The runtime, after some sagas: the session has everything prepared, and a first step is known to be quick. `in_flight`
    /// of them run together.
    ///
    /// # Panics
    /// When the runtime does not start, or a saga does not complete.
    ///
    /// # Cancel safety
    /// Dropped, some of the sagas were run.
    pub async fn begin(store: S, saga: Saga<S, i64>, in_flight: u32, change: impl FnOnce(&mut Settings)) -> Self {
        let builder = Runtime::builder(store).saga(&saga).settings(|settings| {
            (settings.transactions_max, settings.batch_max) = (1, in_flight as usize);
            (settings.poll_interval, settings.reply_timeout) = (QUIET, QUIET);
            (settings.member_ttl, settings.lease_ttl) = (3 * QUIET, 3 * QUIET);
            change(settings);
        });
        let runtime = builder.start().await.expect("the runtime starts");
        let mut sagas = Self { runtime, saga, in_flight, run: 0, tenants: None };
        for _ in 0..2 {
            sagas.together(1).await;
        }
        sagas.rounds(1).await;
        sagas
    }

    /// The same, where each saga belongs to the next one of so many tenants.
    ///
    /// # Panics
    /// When the runtime does not start, or a saga does not complete.
    ///
    /// # Cancel safety
    /// Dropped, some of the sagas were run.
    pub async fn of_tenants(
        tenants: u32,
        store: S,
        saga: Saga<S, i64>,
        in_flight: u32,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        Self { tenants: Some(tenants), ..Self::begin(store, saga, in_flight, change).await }
    }

    /// Runs as many as it takes until their steps need no savepoints.
    ///
    /// # Panics
    /// When one does not complete.
    ///
    /// # Cancel safety
    /// Dropped, some of them were run.
    pub async fn until_spared(&mut self) {
        self.rounds(SPARED_AFTER.div_ceil(self.in_flight)).await;
    }

    /// The store that they run on.
    pub fn store(&self) -> &S {
        self.runtime.store()
    }

    /// Brings as many as are in flight to their end, so many times.
    ///
    /// # Panics
    /// When one does not complete.
    ///
    /// # Cancel safety
    /// Dropped, some of them were run.
    pub async fn rounds(&mut self, rounds: u32) {
        for _ in 0..rounds {
            self.together(self.in_flight).await;
        }
    }

    /// Ends the runtime.
    ///
    /// # Cancel safety
    /// That of [`Runtime::shutdown`].
    pub async fn shutdown(self) {
        self.runtime.shutdown().await;
    }

    async fn together(&mut self, count: u32) {
        let mut callers = JoinSet::new();
        for order in self.run..self.run + count {
            let (mut runtime, saga) = (self.runtime.clone(), self.saga.clone());
            if let Some(tenants) = self.tenants {
                runtime = runtime.tenant(Tenant::new(format!("tenant-{}", order % tenants)).expect("a valid tenant"));
            }
            callers.spawn(async move {
                let running = runtime.start(&saga, format!("order-{order}"), i64::from(order)).await;
                let outcome = running.expect("it starts").outcome().await.expect("the runtime runs");
                assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
            });
        }
        self.run += count;
        callers.join_all().await;
    }
}

impl<S: Store> fmt::Debug for WholeSagas<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WholeSagas").field("in_flight", &self.in_flight).field("run", &self.run).finish_non_exhaustive()
    }
}
