use std::{collections::BTreeMap, vec};

use saga_core::{Outcome, Running, Runtime, Saga, StartError, engine::RuntimeError, store::Store};
use tokio::task::JoinSet;

use super::progress::Progress;
use crate::orders::{Numbered, Order};

/// Starts a saga for each order and waits for the end of each, so many at once.
#[derive(Debug)]
pub(super) struct Drive<'a, S: Store> {
    pub(super) runtime: &'a Runtime<S>,
    pub(super) saga: &'a Saga<S, Order>,
    pub(super) concurrency: usize,
}

/// What is to be brought to its end.
#[derive(Debug)]
pub(super) enum Job {
    /// A saga that an earlier run started, and that is no order of this one.
    Earlier(String),
    /// An order.
    Order(Numbered),
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
    Refused { line: usize, sentence: String },
    NotStarted,
    Earlier { key: String, outcome: Option<Outcome> },
    Started { key: String, already_known: bool, outcome: Option<Outcome> },
}

impl<S: Store> Drive<'_, S> {
    /// Does the jobs. When `interrupted` is ready nothing more is started, and the runtime is shut down.
    pub(super) async fn run(
        &self,
        jobs: Vec<Job>,
        progress: &mut Progress,
        interrupted: impl Future<Output = ()>,
    ) -> anyhow::Result<Driven> {
        let mut driven = Driven::default();
        let mut jobs = jobs.into_iter();
        let mut under_way = JoinSet::new();
        let mut interrupted = std::pin::pin!(interrupted);
        loop {
            self.start_more(&mut jobs, &mut under_way);
            tokio::select! {
                () = &mut interrupted, if !driven.interrupted => {
                    driven.interrupted = true;
                    jobs = Vec::new().into_iter();
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

    fn start_more(&self, jobs: &mut vec::IntoIter<Job>, under_way: &mut JoinSet<anyhow::Result<One>>) {
        for job in jobs.by_ref().take(self.concurrency - under_way.len()) {
            let (runtime, saga) = (self.runtime.clone(), self.saga.clone());
            under_way.spawn(async move {
                match job {
                    Job::Earlier(key) => wait_for_one(&runtime, key).await,
                    Job::Order(Numbered { line, order }) => run_one(&runtime, &saga, line, order).await,
                }
            });
        }
    }
}

async fn wait_for_one<S: Store>(runtime: &Runtime<S>, key: String) -> anyhow::Result<One> {
    let outcome = outcome(&runtime.attach(&key).await?).await?;
    Ok(One::Earlier { key, outcome })
}

async fn run_one<S: Store>(
    runtime: &Runtime<S>,
    saga: &Saga<S, Order>,
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
    let outcome = outcome(&running).await?;
    Ok(One::Started { key, already_known, outcome })
}

/// Nothing where the runtime was shut down before the saga ended.
async fn outcome<S: Store>(running: &Running<S>) -> anyhow::Result<Option<Outcome>> {
    match running.outcome().await {
        Ok(outcome) => Ok(Some(outcome)),
        Err(RuntimeError::Ended) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Driven {
    fn take(&mut self, one: One, progress: &mut Progress) {
        let (key, already_known, outcome) = match one {
            One::NotStarted => return,
            One::Refused { line, sentence } => return self.refused.push((line, sentence)),
            One::Earlier { key, outcome } => return self.take_earlier(&key, outcome),
            One::Started { key, already_known, outcome } => (key, already_known, outcome),
        };
        *(if already_known { &mut self.already_known } else { &mut self.started }) += 1;
        match outcome {
            None => return,
            Some(Outcome::Completed { .. }) => self.completed += 1,
            Some(Outcome::Compensated { reason, .. }) => {
                // "out of stock: NW-011" is one reason with every other product, and so is what the runtime adds in brackets.
                let head = reason.message().split([':', '(']).next().unwrap_or_default().trim();
                *self.compensated_by_reason.entry(head.to_owned()).or_default() += 1;
            }
            Some(stuck) => self.stuck.push(format!("{key} is {stuck}")),
        }
        progress.ended(self.completed, self.compensated());
    }

    fn take_earlier(&mut self, key: &str, outcome: Option<Outcome>) {
        if let Some(stuck @ Outcome::Stuck { .. }) = outcome {
            self.stuck.push(format!("{key} is {stuck}"));
        }
    }

    pub(super) fn compensated(&self) -> usize {
        self.compensated_by_reason.values().sum()
    }
}
