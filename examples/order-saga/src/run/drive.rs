use std::{collections::BTreeMap, vec};

use saga_core::{Outcome, Runtime, Saga, StartError, engine::RuntimeError};
use saga_sqlite::SqliteStore;
use tokio::task::JoinSet;

use super::progress::Progress;
use crate::orders::{Numbered, Order};

/// Starts a saga for each order and waits for the end of each, so many at once.
#[derive(Debug)]
pub(super) struct Drive<'a> {
    pub(super) runtime: &'a Runtime<SqliteStore>,
    pub(super) saga: &'a Saga<SqliteStore, Order>,
    pub(super) concurrency: usize,
}

/// What came of the orders.
#[derive(Debug, Default)]
pub(super) struct Driven {
    pub(super) started: usize,
    pub(super) already_known: usize,
    pub(super) refused: Vec<(usize, String)>,
    pub(super) completed: usize,
    pub(super) compensated_by_reason: BTreeMap<String, usize>,
    pub(super) stuck: Vec<String>,
    pub(super) interrupted: bool,
}

enum One {
    Refused {
        line: usize,
        sentence: String,
    },
    NotStarted,
    /// Without an outcome where the runtime was shut down before the saga ended.
    Started {
        key: String,
        already_known: bool,
        outcome: Option<Outcome>,
    },
}

impl Drive<'_> {
    /// Runs the orders. When `interrupted` is ready nothing more is started, and the runtime is shut down.
    pub(super) async fn run(
        &self,
        orders: Vec<Numbered>,
        progress: &mut Progress,
        interrupted: impl Future<Output = ()>,
    ) -> anyhow::Result<Driven> {
        let mut driven = Driven::default();
        let mut orders = orders.into_iter();
        let mut under_way = JoinSet::new();
        let mut interrupted = std::pin::pin!(interrupted);
        loop {
            self.start_more(&mut orders, &mut under_way);
            tokio::select! {
                () = &mut interrupted, if !driven.interrupted => {
                    driven.interrupted = true;
                    orders = Vec::new().into_iter();
                    progress.say("interrupted; what is under way is brought to a safe end");
                    self.runtime.shutdown().await;
                }
                ended = under_way.join_next() => match ended {
                    Some(one) => driven.take(one??, progress),
                    None => return Ok(driven),
                }
            }
        }
    }

    fn start_more(&self, orders: &mut vec::IntoIter<Numbered>, under_way: &mut JoinSet<anyhow::Result<One>>) {
        for Numbered { line, order } in orders.by_ref().take(self.concurrency - under_way.len()) {
            let (runtime, saga) = (self.runtime.clone(), self.saga.clone());
            under_way.spawn(async move { run_one(&runtime, &saga, line, order).await });
        }
    }
}

async fn run_one(
    runtime: &Runtime<SqliteStore>,
    saga: &Saga<SqliteStore, Order>,
    line: usize,
    order: Order,
) -> anyhow::Result<One> {
    let key = order.order_id.clone();
    let running = match runtime.start(saga, &key, order).await {
        Ok(running) => running,
        Err(StartError::ShuttingDown) => return Ok(One::NotStarted),
        Err(error @ StartError::Store(_)) => return Err(error.into()),
        // The others are about this one order.
        Err(error) => return Ok(One::Refused { line, sentence: error.to_string() }),
    };
    let already_known = running.already_known();
    let outcome = match running.outcome().await {
        Ok(outcome) => Some(outcome),
        Err(RuntimeError::Ended) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(One::Started { key, already_known, outcome })
}

impl Driven {
    fn take(&mut self, one: One, progress: &mut Progress) {
        let (key, already_known, outcome) = match one {
            One::NotStarted => return,
            One::Refused { line, sentence } => return self.refused.push((line, sentence)),
            One::Started { key, already_known, outcome } => (key, already_known, outcome),
        };
        *(if already_known { &mut self.already_known } else { &mut self.started }) += 1;
        match outcome {
            None => return,
            Some(Outcome::Completed { .. }) => self.completed += 1,
            Some(Outcome::Compensated { reason, .. }) => {
                // "out of stock: NW-011" is one reason with every other product.
                let head = reason.message().split(':').next().unwrap_or_default().to_owned();
                *self.compensated_by_reason.entry(head).or_default() += 1;
            }
            Some(Outcome::Stuck { step, reason, .. }) => self.stuck.push(format!("{key} is stuck at {step}: {reason}")),
        }
        progress.ended(self.completed, self.compensated());
    }

    pub(super) fn compensated(&self) -> usize {
        self.compensated_by_reason.values().sum()
    }
}
