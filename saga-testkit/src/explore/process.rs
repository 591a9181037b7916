//! One life of a process that runs the explored saga: it is opened on a world, and brings the saga to its end.

use std::sync::Arc;
use std::time::Duration;

use saga_core::engine::{Outcome, RuntimeBuilder, SagaHandle};
use saga_core::saga::StepHook;
use saga_core::store::{DeadLetterFilter, Members, SagaFilter, Store, StoreError};
use saga_core::{Key, OnExhausted, RetryPolicy, Runtime, Saga, Tenant};

use super::ended::Ended;
use super::hook::Around;
use super::life::{Commits, Director, Life, Look};
use super::operator::try_again;
use super::plan::Disturbance;
use super::store::{Boundaries, Explored};
use super::subject::Explore;
use crate::VirtualTime;
use crate::intercept::Intercepted;
use crate::time::VirtualEnvironment;

/// The key of every explored saga.
pub(super) const KEY: &str = "explored";
/// More lives than any run needs: a process is crashed once or twice.
pub(super) const LIVES_MAX: u64 = 5;
/// How often a run is made until what it is to disturb comes up.
pub(super) const TRIES_MAX: usize = 4;
/// How often what is left behind is looked at until it is gone, and how long between.
const LOOKS_MAX: usize = 400;
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Leases and members outlive a run: what a crashed process held becomes free because its member leaves.
pub(super) const LEASE: Duration = Duration::from_mins(30);
pub(super) const POLL: Duration = Duration::from_millis(200);
/// How many sagas of a store are looked at.
pub(super) const SAGAS_MAX: usize = 1_000;
/// After how long a hosted step is asked for again whose reply was lost with the process.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// What builds the runtime of a subject's process.
pub(super) type Builder<E> = RuntimeBuilder<Explored<<E as Explore>::Store>>;

/// How a saga ended, and whether it was stuck before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finished {
    pub(super) ended: Ended,
    pub(super) is_operated: bool,
}

/// A run that was made.
pub(super) struct Made<R, T> {
    pub(super) run: R,
    pub(super) result: Result<T, String>,
    /// The boundaries that were passed; where the saga is moved or restarted, from there on.
    pub(super) passed: Vec<String>,
    /// Whether what was to be disturbed was.
    pub(super) is_reached: bool,
}

/// How often a run was made. It is made again while it does not reach what it is to disturb: which steps share a commit
/// depends on how long they take, so every other time each has one of its own. A saga in which something may come first or
/// last may never get there; any other one must.
pub(super) struct Tries {
    is_racing: bool,
    made: usize,
}

impl Tries {
    pub(super) fn new(is_racing: bool) -> Self {
        Self { is_racing, made: 0 }
    }

    /// Begins the next one.
    pub(super) fn begin(&mut self) -> Commits {
        self.made += 1;
        if self.made % 2 == 1 { Commits::Shared } else { Commits::OfEachStep }
    }

    /// The run in the end; `None` where it is to be made again.
    pub(super) fn end<R, T>(&self, mut made: Made<R, T>) -> Option<Made<R, T>> {
        made.is_reached |= made.result.is_err();
        if !made.is_reached && self.made < TRIES_MAX {
            return None;
        }
        if !made.is_reached && !self.is_racing {
            made.result = Err("it was never reached".to_owned());
        }
        Some(made)
    }
}

/// A step that sets no limit of attempts has this one, so that what fails each time comes to an end.
pub(super) const RETRY: RetryPolicy =
    RetryPolicy { attempts: Some(5), on_exhausted: OnExhausted::Compensate, ..RetryPolicy::DEFAULT };

/// One life of a process.
pub(super) struct Process<'a, E: Explore> {
    pub(super) subject: &'a E,
    pub(super) world: &'a E::World,
    pub(super) time: &'a VirtualTime,
    pub(super) life: Arc<Life>,
    env: Arc<VirtualEnvironment>,
    store: Arc<E::Store>,
}

impl<'a, E: Explore> Process<'a, E> {
    pub(super) fn new(
        (subject, world, time): (&'a E, &'a E::World, &'a VirtualTime),
        director: &Arc<Director>,
        look: &Arc<Look>,
        seed: u64,
    ) -> Self {
        let (life, env) = (Life::new(director, look), Arc::new(VirtualEnvironment::with_seed(time.clock(), seed)));
        Self { subject, world, time, life, env, store: subject.store(world) }
    }

    /// What stands around each function while this process lives.
    pub(super) fn hook(&self) -> Arc<dyn StepHook> {
        Arc::new(Around { life: Arc::clone(&self.life) })
    }

    /// Its runtime, with what is registered and set by `with`.
    pub(super) async fn open(
        &self,
        with: impl FnOnce(Builder<E>) -> Builder<E>,
    ) -> Result<Runtime<Explored<E::Store>>, String> {
        let store = Intercepted(Boundaries { inner: self.subject.store(self.world), life: Arc::clone(&self.life) });
        let mut builder = self.subject.states(self.world, Runtime::builder(store));
        for service in self.subject.services() {
            builder = builder.service(&service.instrumented(&self.hook()));
        }
        let builder = builder.environment(Arc::clone(&self.env) as Arc<_>).settings(|settings| {
            settings.lease_ttl = LEASE;
            settings.member_ttl = LEASE;
            settings.poll_interval = POLL;
            settings.retry = RETRY;
            settings.reply_timeout = ANSWER_WITHIN;
            settings.shutdown_timeout = LEASE;
            if self.life.director.commits == Commits::OfEachStep {
                settings.steps_per_transaction_max = 1;
            }
        });
        with(builder).start().await.map_err(|error| error.to_string())
    }

    /// Lives until that is done. It answers nothing when the process crashed before.
    pub(super) async fn live<T>(&self, doing: impl Future<Output = Result<T, String>>) -> Result<Option<T>, String> {
        let done = tokio::select! {
            biased;
            () = self.life.died() => None,
            done = doing => Some(done),
        };
        self.env.kill();
        match done {
            Some(done) => done.map(Some),
            None => self.vanish().await,
        }
    }

    /// What a dead process held is free at once, as when its silence has lasted.
    async fn vanish<T>(&self) -> Result<Option<T>, String> {
        if let Some(member) = self.life.member() {
            self.store.leave(member).await.map_err(|error| error.to_string())?;
        }
        Ok(None)
    }

    /// Starts the saga, or finds it, and lets it come to its end.
    pub(super) async fn start_and_end(
        &self,
        runtime: &Runtime<Explored<E::Store>>,
        saga: &Saga<Explored<E::Store>, E::Input>,
    ) -> Result<(Outcome, bool), String> {
        let running = runtime.start(saga, KEY, self.subject.input()).await.map_err(|error| error.to_string())?;
        self.bring_to_end(runtime, &running).await
    }

    /// Starts the saga and brings it to its end, in one life of a process that may have another version of it as well.
    pub(super) async fn run_saga(&self, other: Option<&Saga<Explored<E::Store>, ()>>) -> Result<Finished, String> {
        let subject = self.subject;
        let saga = subject.saga().instrumented::<Explored<E::Store>>(&self.hook());
        let answered = match self.life.director.disturbance {
            Disturbance::Answered { step } => Some(step),
            _ => None,
        };
        let input = answered.and_then(|step| subject.rejected_by(step)).unwrap_or_else(|| subject.input());
        let opened = self.open(|builder| {
            let builder = other.into_iter().fold(builder.saga(&saga), RuntimeBuilder::saga);
            builder.settings(|settings| {
                if answered.is_some() {
                    // Whatever is written in the step's transaction is the step's.
                    settings.steps_per_transaction_max = 1;
                }
            })
        });
        let runtime = opened.await?;
        let running = runtime.start(&saga, KEY, input).await.map_err(|error| error.to_string())?;
        let (outcome, is_operated) = self.bring_to_end(&runtime, &running).await?;
        runtime.shutdown().await;
        if let (Some(step), Outcome::Compensated { failed_step, .. }) = (answered, &outcome)
            && step != failed_step
        {
            return Err(format!("the input of `rejected_by` was rejected by {failed_step} instead"));
        }
        finished((outcome, is_operated))
    }

    /// Lets the saga come to its end here, while others do what they do to it. What is stuck is tried again without what
    /// disturbs it.
    pub(super) async fn bring_to_end(
        &self,
        runtime: &Runtime<Explored<E::Store>>,
        running: &SagaHandle<Explored<E::Store>>,
    ) -> Result<(Outcome, bool), String> {
        let desk = runtime.admin();
        let key = running.key().as_str();
        let (outcome, meanwhile) = tokio::join!(running.outcome(), self.subject.meanwhile(&desk, key));
        meanwhile.map_err(|problem| format!("what was done meanwhile: {problem}"))?;
        let mut outcome = outcome.map_err(|error| error.to_string())?;
        let is_operated = matches!(outcome, Outcome::Stuck { .. });
        if is_operated {
            self.life.director.lift();
            outcome = tokio::select! {
                ended = running.closed() => ended.map_err(|error| error.to_string())?,
                failed = Box::pin(try_again(runtime, self.time)) => return Err(failed),
            };
        }
        sent(runtime, self.time).await?;
        Ok((outcome, is_operated))
    }

    /// Nothing stays behind, and the user finds nothing wrong.
    pub(super) async fn judge(&self, ended: &Ended) -> Result<(), String> {
        nothing_left(&*self.store, KEY).await?;
        self.subject.audit(self.world, ended).await.map_err(|problem| format!("the audit: {problem}"))
    }
}

pub(super) fn finished((outcome, is_operated): (Outcome, bool)) -> Result<Finished, String> {
    match outcome {
        Outcome::Completed { .. } => Ok(Finished { ended: Ended::Completed, is_operated }),
        Outcome::Compensated { .. } => Ok(Finished { ended: Ended::Compensated, is_operated }),
        other @ (Outcome::Stuck { .. } | Outcome::Tombstone { .. }) => Err(format!("it is {other}")),
    }
}

/// Reads the tables of a subject's world.
pub(super) fn look_at<E: Explore>(subject: &Arc<E>, world: &Arc<E::World>) -> Arc<Look> {
    let (subject, world) = (Arc::clone(subject), Arc::clone(world));
    Arc::new(move || {
        let (subject, world) = (Arc::clone(&subject), Arc::clone(&world));
        Box::pin(async move { subject.tables(&world).await })
    })
}

/// Waits until every message was sent.
pub(super) async fn sent<S: Store>(runtime: &Runtime<S>, time: &VirtualTime) -> Result<(), String> {
    for _ in 0..LOOKS_MAX {
        if runtime.store().depth().await.map_err(|error| error.to_string())?.rows == 0 {
            return Ok(());
        }
        time.advance(LOOK_EVERY).await;
    }
    Err("its messages were not sent".to_owned())
}

/// Waits until there is no work left of the saga, or there is no sense in waiting.
pub(super) async fn settled<S: Store>(runtime: &Runtime<S>, time: &VirtualTime, key: &str) {
    for _ in 0..LOOKS_MAX {
        if no_work_left(&**runtime.store(), key).await.is_ok() {
            return;
        }
        time.advance(LOOK_EVERY).await;
    }
}

/// Nothing stays behind in the whole store, which has the saga of this key, its sub-sagas and the steps that it asked other
/// services for.
pub(super) async fn nothing_left(store: &impl Store, key: &str) -> Result<(), String> {
    no_work_left(store, key).await?;
    let failed = |error: StoreError| error.to_string();
    let filter = SagaFilter { limit: SAGAS_MAX, ..SagaFilter::default() };
    for saga in store.list(&filter).await.map_err(failed)? {
        if !saga.status.is_ended() {
            return Err(format!("{} has not ended, it is {}", saga.key, saga.status));
        }
        let stored = store.saga_with_steps(&saga.tenant, &saga.key).await.map_err(failed)?;
        let left = stored.map_or(0, |stored| stored.work.len());
        if left > 0 {
            return Err(format!("{left} work rows of {} are left", saga.key));
        }
    }
    no_letter_left(store).await
}

/// Every message could be handled.
pub(super) async fn no_letter_left(store: &impl Store) -> Result<(), String> {
    let letters = store.dead_letters(&DeadLetterFilter::default()).await.map_err(|error| error.to_string())?;
    match letters.first() {
        Some(letter) => Err(format!("a dead letter is left: {:?}", letter.letter)),
        None => Ok(()),
    }
}

/// Neither work of the saga nor a forgotten saga stays behind.
pub(super) async fn no_work_left(store: &impl Store, key: &str) -> Result<(), String> {
    let failed = |error: StoreError| error.to_string();
    if !store.orphaned(1).await.map_err(failed)?.is_empty() {
        return Err("the saga waits for nothing".to_owned());
    }
    let key = Key::new(key).map_err(|error| error.to_string())?;
    let stored = store.saga_with_steps(&Tenant::default(), &key).await.map_err(failed)?;
    match stored.ok_or("there is no saga")?.work.len() {
        0 => Ok(()),
        left => Err(format!("{left} work rows are left")),
    }
}
