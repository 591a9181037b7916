use std::{collections::BTreeMap, sync::Arc, time::Duration, vec};

use saga_core::{
    Outcome, Runtime, Saga, SagaHandle, StartError,
    engine::{ComponentHealth, RuntimeError},
    store::Store,
};
use tokio::{task::JoinSet, time::Instant};

use super::{outage::Outage, progress::Progress};
use crate::{
    orders::{Numbered, Order},
    print::say,
};

/// How often the orders are gone through again, each time since the database was away the time before.
const PASSES_MAX: u32 = 5;

/// Starts a saga for each order and waits for the end of each, so many at once.
#[derive(Debug)]
pub(super) struct Drive<'a, S: Store> {
    runtime: &'a Runtime<S>,
    saga: &'a Saga<S, Order>,
    concurrency: usize,
    outage: Arc<Outage>,
    /// Nothing is started from then on.
    until: Option<Instant>,
}

/// What starting an order takes.
struct Starts<S: Store> {
    runtime: Runtime<S>,
    saga: Saga<S, Order>,
    outage: Arc<Outage>,
    until: Option<Instant>,
}

/// What is to be brought to its end.
#[derive(Debug, Clone)]
pub(super) enum Job {
    /// A saga that an earlier run started, and that is no order of this one.
    Earlier(String),
    /// An order.
    Order(Arc<Numbered>),
}

/// How the orders ended.
#[derive(Debug, Default)]
pub(super) struct Driven {
    pub(super) started: usize,
    pub(super) already_started: usize,
    pub(super) refused: Vec<(usize, String)>,
    pub(super) completed: usize,
    pub(super) compensated_by_reason: BTreeMap<String, usize>,
    pub(super) stuck: Vec<String>,
    /// Sagas that the database had, and does not know any more; they could not be started again.
    pub(super) lost: Vec<String>,
    /// Orders that it did not know any more, and that were started again.
    pub(super) started_again: usize,
    /// Orders whose keys the database knows. The rest of them was purged.
    pub(super) tombstones: usize,
    /// Orders that were left out, since it was too late to start them.
    pub(super) late: usize,
    pub(super) interrupted: bool,
}

enum One {
    Refused { line: usize, sentence: String },
    NotStarted,
    Late,
    Lost { key: String },
    Earlier { key: String, outcome: Option<Outcome> },
    Started { key: String, already_started: bool, again: bool, outcome: Option<Outcome> },
}

impl<'a, S: Store> Drive<'a, S> {
    /// A database that is away is waited for, for `patience`.
    pub(super) fn new(
        runtime: &'a Runtime<S>,
        saga: &'a Saga<S, Order>,
        concurrency: usize,
        patience: Duration,
    ) -> Self {
        Self { runtime, saga, concurrency, outage: Arc::new(Outage::new(patience)), until: None }
    }

    /// Nothing is started from that moment on.
    pub(super) fn until(self, until: Option<Instant>) -> Self {
        Self { until, ..self }
    }

    /// Does the jobs. When `interrupted` is ready nothing more is started, and the runtime is shut down.
    ///
    /// A database that was away may have lost what it had committed, as a replica does that takes over while it lags
    /// behind. So all orders are gone through again then: a start is the same saga however often it is made.
    pub(super) async fn run(
        &self,
        jobs: Vec<Job>,
        progress: &mut Progress,
        interrupted: impl Future<Output = ()>,
    ) -> anyhow::Result<Driven> {
        let mut interrupted = std::pin::pin!(interrupted);
        let mut driven = self.pass(jobs.clone(), progress, interrupted.as_mut()).await?;
        for _ in 1..PASSES_MAX {
            if driven.interrupted || !self.outage.take_seen() {
                break;
            }
            say("the database was away; looking whether it still knows all orders");
            progress.begin_again();
            let again = self.pass(jobs.clone(), progress, interrupted.as_mut()).await?;
            driven = driven.corrected_by(again);
        }
        Ok(driven)
    }

    async fn pass(
        &self,
        jobs: Vec<Job>,
        progress: &mut Progress,
        mut interrupted: std::pin::Pin<&mut impl Future<Output = ()>>,
    ) -> anyhow::Result<Driven> {
        let mut driven = Driven::default();
        let mut jobs = jobs.into_iter();
        let mut under_way = JoinSet::new();
        let recoveries = self.runtime.health().store_recoveries;
        loop {
            self.start_more(&mut jobs, &mut under_way);
            tokio::select! {
                () = &mut interrupted, if !driven.interrupted => {
                    driven.interrupted = true;
                    jobs = Vec::new().into_iter();
                    say("interrupted; what is under way is brought to a safe end");
                    self.runtime.shutdown().await;
                }
                ended = under_way.join_next() => match ended {
                    Some(one) => driven.take(one??, progress),
                    None => break,
                }
            }
        }
        let health = self.runtime.health();
        if health.store_recoveries > recoveries || health.store != ComponentHealth::Healthy {
            self.outage.was_seen();
        }
        Ok(driven)
    }

    fn start_more(&self, jobs: &mut vec::IntoIter<Job>, under_way: &mut JoinSet<anyhow::Result<One>>) {
        for job in jobs.by_ref().take(self.concurrency - under_way.len()) {
            let (runtime, saga, outage) = (self.runtime.clone(), self.saga.clone(), Arc::clone(&self.outage));
            let starts = Starts { runtime, saga, outage, until: self.until };
            under_way.spawn(async move {
                match job {
                    Job::Earlier(key) => wait_for_one(&starts.runtime, &starts.outage, key).await,
                    Job::Order(order) => starts.run_one(&order).await,
                }
            });
        }
    }
}

async fn wait_for_one<S: Store>(runtime: &Runtime<S>, outage: &Outage, key: String) -> anyhow::Result<One> {
    loop {
        let outcome = match runtime.attach(&key).await {
            Ok(running) => running.outcome().await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(outcome) => return Ok(One::Earlier { key, outcome: Some(outcome) }),
            Err(RuntimeError::Ended) => return Ok(One::Earlier { key, outcome: None }),
            Err(RuntimeError::Lost { .. } | RuntimeError::NoSaga(_)) => {
                outage.was_seen();
                return Ok(One::Lost { key });
            }
            Err(error) => outage.wait_out(error.into()).await?,
        }
    }
}

impl<S: Store> Starts<S> {
    async fn run_one(&self, Numbered { line, order }: &Numbered) -> anyhow::Result<One> {
        let key = order.order_id.clone();
        let mut again = false;
        loop {
            if self.until.is_some_and(|until| Instant::now() >= until) {
                return Ok(One::Late);
            }
            let running = match self.runtime.start(&self.saga, &key, order.clone()).await {
                Ok(running) => running,
                Err(StartError::ShuttingDown) => return Ok(One::NotStarted),
                // It was started or not: the same start says which.
                Err(error @ StartError::Store(_)) => {
                    self.outage.wait_out(error.into()).await?;
                    continue;
                }
                // The others are about this one order.
                Err(error) => return Ok(One::Refused { line: *line, sentence: error.to_string() }),
            };
            self.outage.is_over();
            let already_started = running.already_started();
            match outcome(&running).await {
                Ok(outcome) => return Ok(One::Started { key, already_started, again, outcome }),
                Err(RuntimeError::Lost { .. }) => {
                    self.outage.was_seen();
                    say(format_args!("the database has lost the order {key}, which is started again"));
                    again = true;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Nothing where the runtime was shut down before the saga ended.
async fn outcome<S: Store>(running: &SagaHandle<S>) -> Result<Option<Outcome>, RuntimeError> {
    match running.outcome().await {
        Ok(outcome) => Ok(Some(outcome)),
        Err(RuntimeError::Ended) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Driven {
    fn take(&mut self, one: One, progress: &mut Progress) {
        let (key, already_started, outcome) = match one {
            One::NotStarted => return,
            One::Late => return self.late += 1,
            One::Refused { line, sentence } => return self.refused.push((line, sentence)),
            One::Lost { key } => return self.lost.push(key),
            One::Earlier { key, outcome } => return self.take_earlier(&key, outcome),
            One::Started { key, already_started, again, outcome } => {
                self.started_again += usize::from(again);
                (key, already_started, outcome)
            }
        };
        *(if already_started { &mut self.already_started } else { &mut self.started }) += 1;
        match outcome {
            None => return,
            Some(Outcome::Completed { .. }) => self.completed += 1,
            Some(Outcome::Compensated { reason, .. }) => {
                // "out of stock: NW-011" is one reason with every other product, and so is what the runtime adds in brackets.
                let head = reason.message().split([':', '(']).next().unwrap_or_default().trim();
                *self.compensated_by_reason.entry(head.to_owned()).or_default() += 1;
            }
            Some(Outcome::Tombstone { .. }) => self.tombstones += 1,
            Some(stuck) => self.stuck.push(format!("{key} is {stuck}")),
        }
        progress.ended(self.completed, self.compensated());
    }

    fn take_earlier(&mut self, key: &str, outcome: Option<Outcome>) {
        if let Some(stuck @ Outcome::Stuck { .. }) = outcome {
            self.stuck.push(format!("{key} is {stuck}"));
        }
    }

    /// What is known when the orders were gone through again: those that were started then had been lost.
    fn corrected_by(self, again: Self) -> Self {
        Self {
            started: self.started,
            already_started: self.already_started,
            started_again: self.started_again + again.started + again.started_again,
            lost: [self.lost, again.lost].concat(),
            ..again
        }
    }

    pub(super) fn compensated(&self) -> usize {
        self.compensated_by_reason.values().sum()
    }
}
