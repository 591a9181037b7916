//! One run in which a saga is started instead of another one.

use std::sync::Arc;

use saga_core::engine::{Outcome, RuntimeError};
use saga_core::store::{StepRecord, Store};
use saga_core::{Key, Runtime, Tenant};

use super::super::ended::Ended;
use super::super::life::{Director, Look};
use super::super::process::{
    Finished, KEY, LIVES_MAX, LOOK_EVERY, Made, Process, Tries, finished, look_at, no_work_left, nothing_left, sent,
    settled,
};
use super::super::store::Explored;
use super::super::subject::Explore;
use super::super::world::{fresh, in_time};
use super::plan::RestartRun;
use super::restarted::{Left, Restarted};
use crate::VirtualTime;

/// The key of the saga that is started instead of the explored one.
const NEW_KEY: &str = "explored-again";
const WHY: &str = "the exploration says so";

/// Whether there was a new saga, and how it ended.
pub(super) enum Went {
    Refused(String),
    Restarted { restarted: Restarted, is_operated: bool },
}

struct Course<'a, E: Explore> {
    subject: &'a E,
    world: &'a E::World,
    time: &'a VirtualTime,
    look: Arc<Look>,
    from: &'static str,
    old: &'a Arc<Director>,
    new: &'a Arc<Director>,
}

pub(super) async fn one_restart<E: Explore>(
    subject: Arc<E>,
    run: RestartRun,
    is_racing: bool,
) -> Made<RestartRun, Went> {
    let mut tries = Tries::new(is_racing);
    loop {
        let commits = tries.begin();
        let old = Arc::new(Director::new(run.base.rejected, run.base.disturbance.clone(), commits));
        let new = Director::new(run.rejected, run.then.clone(), commits);
        let new = Arc::new(new.misreading(subject.misreads()));
        let time = VirtualTime::new();
        let living = async {
            let world = Arc::new(fresh(&*subject, &time).await?);
            let (subject, world, look) = (&*subject, &*world, look_at(&subject, &world));
            Course { subject, world, time: &time, look, from: run.from, old: &old, new: &new }.live().await
        };
        let result = Box::pin(in_time(&time, living)).await;
        let is_reached = old.is_done() && new.is_done();
        if let Some(made) = tries.end(Made { run: run.clone(), result, passed: new.passed(), is_reached }) {
            return made;
        }
    }
}

impl<E: Explore> Course<'_, E> {
    async fn live(&self) -> Result<Went, String> {
        let process = self.process(self.old, 0);
        let ended = process.live(self.end_old(&process)).await?;
        let is_forced = ended.ok_or("the old saga's process crashed")?;
        for seed in 1..LIVES_MAX {
            let process = self.process(self.new, seed);
            if let Some(came) = process.live(Box::pin(self.restarted_life(&process))).await? {
                return match came {
                    Ok(finished) => self.judge(finished, is_forced).await,
                    Err(reason) => Ok(Went::Refused(reason)),
                };
            }
        }
        Err("it crashed again and again".to_owned())
    }

    fn process(&self, director: &Arc<Director>, seed: u64) -> Process<'_, E> {
        Process::new((self.subject, self.world, self.time), director, &self.look, seed)
    }

    /// Lets the old saga come to nothing: where it is stuck, a person ends it so. Answers whether that was needed.
    async fn end_old(&self, process: &Process<'_, E>) -> Result<bool, String> {
        let saga = self.subject.saga().instrumented::<Explored<E::Store>>(&process.hook());
        let runtime = process.open(|builder| builder.saga(&saga)).await?;
        let started = runtime.start(&saga, KEY, self.subject.input()).await;
        let running = started.map_err(|error| error.to_string())?;
        let desk = runtime.admin();
        let (outcome, meanwhile) = tokio::join!(running.outcome(), self.subject.meanwhile(&desk, KEY));
        meanwhile.map_err(|problem| format!("what was done meanwhile: {problem}"))?;
        let is_stuck = matches!(outcome.map_err(|error| error.to_string())?, Outcome::Stuck { .. });
        if is_stuck {
            force(&runtime).await?;
        }
        match running.closed().await.map_err(|error| error.to_string())? {
            Outcome::Compensated { .. } => {}
            other => return Err(format!("the old saga was to come to nothing, and is {other}")),
        }
        sent(&runtime, self.time).await?;
        // Of a saga that was ended by force, the others of its branches may still wait for their next attempts.
        settled(&runtime, self.time, KEY).await;
        runtime.shutdown().await;
        Ok(is_stuck)
    }

    /// A process that starts the new saga, or finds it, and brings it to its end; or the reason why there is to be none.
    async fn restarted_life(&self, process: &Process<'_, E>) -> Result<Result<Finished, String>, String> {
        let saga = self.subject.saga().instrumented::<Explored<E::Store>>(&process.hook());
        let runtime = process.open(|builder| builder.saga(&saga)).await?;
        match runtime.admin().control(KEY).restart(self.from, NEW_KEY, WHY).await {
            Ok(_) => {}
            Err(RuntimeError::Refused { problem, .. }) => {
                runtime.shutdown().await;
                return Ok(Err(problem));
            }
            Err(error) => return Err(format!("the restart failed: {error}")),
        }
        let running = runtime.attach(NEW_KEY).await.map_err(|error| error.to_string())?;
        let ended = process.bring_to_end(&runtime, &running).await?;
        runtime.shutdown().await;
        finished(ended).map(Ok)
    }

    async fn judge(&self, finished: Finished, is_forced: bool) -> Result<Went, String> {
        let store = self.subject.store(self.world);
        no_work_left(&*store, KEY).await.map_err(|problem| format!("of the old saga: {problem}"))?;
        if is_forced {
            // What other services do for the old saga waits for a person, as the saga did.
            no_work_left(&*store, NEW_KEY).await?;
        } else {
            nothing_left(&*store, NEW_KEY).await?;
        }
        let saga = self.subject.saga();
        let in_transactions = saga.names_in_transactions();
        let mut left = Left::new(saga.names_with_effects(), saga.names_in_arms());
        left.add(&records(&*store, KEY).await?, |step, is_undo| in_transactions.contains(&(step, is_undo)));
        // What the new one took over is skipped there, and what was stuck in it was tried again.
        left.add(&records(&*store, NEW_KEY).await?, |_, _| true);
        let Finished { ended, is_operated } = finished;
        let restarted = Restarted { from: self.from, is_forced, ended, left };
        if let (Ended::Completed, Some(step)) = (&restarted.ended, restarted.left.missing()) {
            return Err(format!("the new saga completed, and nothing of {step} stands; {restarted:?}"));
        }
        let judged = self.subject.audit_restarted(self.world, &restarted).await;
        judged.map_err(|problem| format!("the audit: {problem}; {restarted:?}"))?;
        Ok(Went::Restarted { restarted, is_operated })
    }
}

/// What a person does who gives a stuck saga up: it ends as compensated, and what it did stays as it is.
async fn force<S: Store>(runtime: &Runtime<S>) -> Result<(), String> {
    loop {
        let status = runtime.status(KEY).await.map_err(|error| error.to_string())?.ok_or("there is no saga")?;
        let operator = runtime.admin().control(KEY).at_revision(status.revision);
        match operator.force_compensated(WHY).await {
            Ok(()) => return Ok(()),
            // Another branch moved it meanwhile.
            Err(RuntimeError::Moved { .. }) => tokio::time::sleep(LOOK_EVERY).await,
            Err(error) => return Err(error.to_string()),
        }
    }
}

async fn records<S: Store>(store: &S, key: &str) -> Result<Vec<StepRecord>, String> {
    let key = Key::new(key).map_err(|error| error.to_string())?;
    store.records_of(&Tenant::default(), &key).await.map_err(|error| error.to_string())
}
