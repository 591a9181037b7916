//! The three services in one process. Each has its own store; they share only the transport.

use std::time::Duration;

use anyhow::{Context, bail};
use saga_core::engine::TimelineStatus;
use saga_core::engine::{Became, Happened};
use saga_core::store::{DeadLetterFilter, Status};
use saga_core::transport::Transport;
use saga_core::{Runtime, Service};

use crate::books::{Books, Entry};
use crate::services::{payments, shipping, stock};

/// The time limit of the whole run.
const WAIT_MAX: Duration = Duration::from_mins(5);
/// The pause between two polls.
const PAUSE: Duration = Duration::from_millis(50);
/// The steps that must have ended for every order, with their possible outcomes if the order failed.
const STEPS: [&str; 4] = ["stock/reserve-stock", "payments/charge-card", "shipping/pack-order", "shipping/ship-order"];

/// The services, and their stores.
pub(crate) struct Shop<S: Books> {
    stores: [S; 3],
    runtimes: Vec<Runtime<S>>,
}

impl<S: Books> Shop<S> {
    /// Starts the three services.
    ///
    /// # Errors
    /// When a store or the transport cannot be used.
    ///
    /// # Cancel safety
    /// If it is dropped, the started services stop.
    pub(crate) async fn start<T: Transport + Clone>(
        stores: [S; 3],
        transport: &T,
        deadline: Duration,
    ) -> anyhow::Result<Self> {
        let services: [Service<S>; 3] = [stock()?, payments()?, shipping(deadline)?];
        let mut runtimes = Vec::new();
        for (store, service) in stores.iter().zip(&services) {
            store.prepare().await?;
            let runtime = Runtime::builder(store.clone()).transport(transport.clone()).service(service);
            runtimes.push(runtime.start().await.with_context(|| format!("the service `{}`", service.name()))?);
        }
        Ok(Self { stores, runtimes })
    }

    /// The runtime of the warehouse, which publishes the orders.
    pub(crate) fn front(&self) -> &Runtime<S> {
        &self.runtimes[0]
    }

    /// Waits until an order has ended in every service, and returns its timeline.
    ///
    /// # Errors
    /// When that takes too long, or the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub(crate) async fn settled(&self, key: &str) -> anyhow::Result<TimelineStatus> {
        let inspector = self.runtimes[2].admin().query();
        let waiting = async {
            loop {
                if let Some(timeline) = inspector.timeline(key).await?
                    && is_settled(&timeline)
                {
                    return Ok(timeline);
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        if let Ok(settled) = tokio::time::timeout(WAIT_MAX, waiting).await {
            return settled;
        }
        let seen = inspector.timeline(key).await?;
        bail!("the order {key} has not come to its end: {seen:#?}")
    }

    /// Waits until a step of a service is known there.
    ///
    /// # Errors
    /// When that takes too long, or the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub(crate) async fn knows(&self, service: usize, step: &str) -> anyhow::Result<()> {
        let waiting = async {
            while self.runtimes[service].status(step).await?.is_none_or(|saga| !saga.summary.status.is_ended()) {
                tokio::time::sleep(PAUSE).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(WAIT_MAX, waiting).await.with_context(|| format!("{step} is not known in time"))?
    }

    /// The journals of all services.
    ///
    /// # Errors
    /// When a store cannot be read.
    ///
    /// # Cancel safety
    /// It only reads.
    pub(crate) async fn journal(&self) -> anyhow::Result<Vec<Entry>> {
        let mut all = Vec::new();
        for store in &self.stores {
            all.extend(store.journal().await?);
        }
        Ok(all)
    }

    /// The number of dead letters.
    ///
    /// # Errors
    /// When a store cannot be read.
    ///
    /// # Cancel safety
    /// It only reads.
    pub(crate) async fn dead_letters(&self) -> anyhow::Result<usize> {
        let mut all = 0;
        for runtime in &self.runtimes {
            all += runtime.admin().dead_letters().list(DeadLetterFilter::default()).await?.len();
        }
        Ok(all)
    }

    /// Stops the services.
    ///
    /// # Cancel safety
    /// If it is dropped, running work continues when the program runs again.
    pub(crate) async fn stop(self) {
        for runtime in &self.runtimes {
            runtime.shutdown().await;
        }
    }
}

/// Whether an order was shipped, or has no remaining effect.
fn is_settled(timeline: &TimelineStatus) -> bool {
    let last = |name: &str| {
        let of = |happened: &Happened| match happened {
            Happened::Step { step, became, .. } if step == name => Some(*became),
            _ => None,
        };
        timeline.entries.iter().rev().find_map(|entry| of(&entry.what))
    };
    match timeline.status {
        Status::Completed => STEPS.iter().all(|step| last(step) == Some(Became::Done)),
        Status::Compensated => STEPS.iter().all(|step| {
            matches!(last(step), Some(Became::Undone | Became::Tombstoned | Became::Rejected | Became::Failed))
        }),
        _ => false,
    }
}
