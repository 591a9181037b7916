use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use saga_core::engine::{Outcome, RuntimeBuilder, RuntimeError};
use saga_core::saga::StepHook;
use saga_core::store::{Members, Status};
use saga_core::{Key, Runtime, Saga, Tenant};
use tokio::task::JoinSet;

use super::environment::Mortal;
use super::hook::Around;
use super::life::{Director, Life, Look};
use super::plan::{Disturbance, disturbances};
use super::report::{Broken, Exploration, Failures};
use super::{Ended, Explore, Explored};

/// The key of every explored saga.
const KEY: &str = "explored";
/// How many runs are under way at a time.
const RUNS_AT_A_TIME: usize = 4;
/// How long a run may take, in the world's time.
const RUN_WITHIN: Duration = Duration::from_mins(2);
/// How often a run of a saga with groups is made until what it is to disturb comes up.
const TRIES_MAX: usize = 4;
/// More lives than any run needs: it is crashed once.
const LIVES_MAX: usize = 5;
/// How often what is left behind is looked at until it is gone, and how long between.
const LOOKS_MAX: usize = 400;
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Leases and members outlive a run: what a crashed process held becomes free because its member leaves.
const LEASE: Duration = Duration::from_mins(30);
const POLL: Duration = Duration::from_millis(200);

/// Explores a saga. It takes about as many runs as the saga has boundaries and disturbances of its functions; the runtime
/// that calls it needs timers.
///
/// # Errors
/// Every run that did not end, ended otherwise than it must, failed the audit, or did not reach what it was to disturb.
///
/// # Cancel safety
/// Dropping it ends the runs; their worlds are dropped.
pub async fn explore<E: Explore>(subject: E) -> Result<Exploration, Failures> {
    let mut explorer = Explorer {
        subject: Arc::new(subject),
        exploration: Exploration::default(),
        broken: Vec::new(),
        seen: BTreeSet::new(),
    };
    let steps = explorer.steps().await;
    let undone = explorer.crash_everywhere(&steps).await;
    let mut disturbed = disturbances(&steps, &undone);
    let batch_steps = explorer.subject.saga().batch_step_names();
    let rejecting = batch_steps.into_iter().filter(|step| explorer.subject.rejected_by(step).is_some());
    disturbed.extend(rejecting.map(|step| (None, Disturbance::Answered { step })));
    explorer.run_all(disturbed).await;
    let Explorer { exploration, broken, .. } = explorer;
    if broken.is_empty() { Ok(exploration) } else { Err(Failures { broken, exploration }) }
}

struct Explorer<E: Explore> {
    subject: Arc<E>,
    exploration: Exploration,
    broken: Vec<Broken>,
    /// The boundaries at which it was crashed.
    seen: BTreeSet<String>,
}

/// What is done in one run: which step rejects, and what is disturbed.
type Run = (Option<&'static str>, Disturbance);

/// What came of one run.
struct Came {
    run: Run,
    passed: Vec<String>,
    result: Result<(Ended, bool), String>,
    /// What was to be disturbed did not happen.
    is_unreached: bool,
}

impl<E: Explore> Explorer<E> {
    /// The steps that are disturbed: those in arms that this input does not take cannot be.
    async fn steps(&mut self) -> Vec<&'static str> {
        let saga = self.subject.saga();
        let (mut steps, in_arms) = (saga.step_names(), saga.names_in_arms());
        if !in_arms.is_empty() {
            let passed = self.run_all(vec![(None, Disturbance::None)]).await;
            let is_left_out =
                |step: &&'static str| in_arms.contains(step) && !passed.contains(&format!("before {step}"));
            self.exploration.left_out = steps.extract_if(.., |step| is_left_out(&*step)).collect();
        }
        steps
    }

    /// Lets the saga run in each direction, and crashes it at each boundary that it passes. Answers which steps are
    /// undone, each with a step that makes it so by rejecting.
    async fn crash_everywhere(&mut self, steps: &[&'static str]) -> Vec<(&'static str, &'static str)> {
        let mut undone: Vec<(&'static str, &'static str)> = Vec::new();
        let forward = [(None, Disturbance::None), (None, Disturbance::FailEachOnce)];
        let back = steps.iter().map(|step| (Some(*step), Disturbance::None));
        for base in forward.into_iter().chain(back) {
            let rejected = base.0;
            let passed = self.run_all(vec![base.clone()]).await;
            for step in steps {
                let is_undone = passed.contains(&format!("before {step}:undo"));
                if let (Some(rejected), true) = (rejected, is_undone && !undone.iter().any(|(known, _)| known == step))
                {
                    undone.push((step, rejected));
                }
            }
            let is_amid_errors = base.1 == Disturbance::FailEachOnce;
            let new: Vec<String> = passed.into_iter().filter(|boundary| self.seen.insert(boundary.clone())).collect();
            self.exploration.crashes += new.len() as u64;
            self.exploration.boundaries.extend(new.iter().cloned());
            let crash = |boundary| Disturbance::Crash { boundary, is_amid_errors };
            self.run_all(new.into_iter().map(|boundary| (rejected, crash(boundary))).collect()).await;
        }
        undone
    }

    /// Runs all of them, some at a time; answers the boundaries that they passed.
    async fn run_all(&mut self, runs: Vec<Run>) -> Vec<String> {
        let mut passed = Vec::new();
        let mut waiting = runs.into_iter();
        let mut under_way = JoinSet::new();
        // What others do to the saga may come in front of it, amid of it or behind it.
        let is_alone = !self.seen.iter().any(|boundary| boundary.ends_with(" the note `operator`"));
        loop {
            while under_way.len() < RUNS_AT_A_TIME
                && let Some(run) = waiting.next()
            {
                under_way.spawn(one_run(Arc::clone(&self.subject), run, is_alone));
            }
            match under_way.join_next().await {
                None => return passed,
                Some(Ok(came)) => {
                    passed.extend(came.passed.iter().cloned());
                    self.conclude(came);
                }
                Some(Err(panic)) => self.broken.push(Broken {
                    disturbance: "a run".to_owned(),
                    problem: format!("the exploration itself, or the audit, panicked: {panic}"),
                }),
            }
        }
    }

    fn conclude(&mut self, came: Came) {
        self.exploration.runs += 1;
        self.exploration.unreached += u64::from(came.is_unreached);
        let problem = match came.result {
            Err(problem) => Some(problem),
            Ok((ended, is_operated)) => {
                self.exploration.completed += u64::from(ended == Ended::Completed);
                self.exploration.compensated += u64::from(ended == Ended::Compensated);
                self.exploration.operated += u64::from(is_operated);
                self.exploration.compared += u64::from(matches!(came.run.1, Disturbance::Answered { .. }));
                unexpected(&came.run, &ended, is_operated)
            }
        };
        if let Some(problem) = problem {
            let (rejected, disturbance) = came.run;
            let rejected = rejected.map_or_else(String::new, |step| format!(", while {step} rejects"));
            self.broken.push(Broken { disturbance: format!("{disturbance}{rejected}"), problem });
        }
    }
}

/// A crash changes nothing about how a saga ends.
fn unexpected(run: &Run, ended: &Ended, is_operated: bool) -> Option<String> {
    let expected = match run {
        (None, Disturbance::None | Disturbance::Crash { .. }) => Ended::Completed,
        (Some(_), Disturbance::None | Disturbance::Crash { .. }) if !is_operated => Ended::Compensated,
        (_, Disturbance::Answered { .. }) => Ended::Compensated,
        _ => return None,
    };
    (*ended != expected).then(|| format!("it ended {ended:?} instead of {expected:?}"))
}

async fn one_run<E: Explore>(subject: Arc<E>, run: Run, is_alone: bool) -> Came {
    // Which branch of a group comes first is another thing in each run, and so is when others come.
    let is_racing = subject.saga().has_branches() || !is_alone;
    let mut tries = if is_racing { TRIES_MAX } else { 1 };
    loop {
        tries -= 1;
        let director = Arc::new(Director::new(run.0, run.1.clone()));
        let lived = tokio::time::timeout(RUN_WITHIN, live(&subject, &director)).await;
        let mut result = lived.unwrap_or_else(|_| Err(format!("it did not end within {RUN_WITHIN:?}")));
        let is_unreached = result.is_ok() && !director.is_done();
        if is_unreached && tries > 0 {
            continue;
        }
        if is_unreached && !is_racing {
            result = Err("it was never reached".to_owned());
        }
        if let (Ok(_), Some(written)) = (&result, director.written()) {
            result = Err(format!("something was written for the input that was rejected: {written}"));
        }
        return Came { run, passed: director.passed(), result, is_unreached };
    }
}

/// Lives as often as it takes, and judges what is there in the end.
async fn live<E: Explore>(subject: &Arc<E>, director: &Arc<Director>) -> Result<(Ended, bool), String> {
    let world = Arc::new(subject.fresh().await);
    let look: Arc<Look> = {
        let (subject, world) = (Arc::clone(subject), Arc::clone(&world));
        Arc::new(move || {
            let (subject, world) = (Arc::clone(&subject), Arc::clone(&world));
            Box::pin(async move { subject.tables(&world).await })
        })
    };
    let saga = subject.saga();
    for seed in 0..LIVES_MAX {
        let life = Life::new(director, &look);
        let env = Arc::new(Mortal::new(seed as u64));
        let inner = subject.store(&world);
        let ended = tokio::select! {
            biased;
            () = life.died() => None,
            ended = one_life(&**subject, &world, &saga, &life, &env) => Some(ended),
        };
        env.kill();
        if let Some(ended) = ended {
            let ended = ended?;
            nothing_left(&*inner).await?;
            subject.audit(&world, &ended.0).await.map_err(|problem| format!("the audit: {problem}"))?;
            return Ok(ended);
        }
        // What the dead process held is free at once, as when its silence has lasted.
        if let Some(member) = life.member() {
            inner.leave(member).await.map_err(|error| error.to_string())?;
        }
    }
    Err("it crashed again and again".to_owned())
}

async fn one_life<E: Explore>(
    subject: &E,
    world: &E::World,
    saga: &Saga<E::Store, E::Input>,
    life: &Arc<Life>,
    env: &Arc<Mortal>,
) -> Result<(Ended, bool), String> {
    let hook: Arc<dyn StepHook> = Arc::new(Around { life: Arc::clone(life) });
    let saga = saga.instrumented::<Explored<E::Store>>(&hook);
    let store = Explored { inner: subject.store(world), life: Arc::clone(life) };
    let answered = match life.director.disturbance {
        Disturbance::Answered { step } => Some(step),
        _ => None,
    };
    let input = answered.and_then(|step| subject.rejected_by(step)).unwrap_or_else(|| subject.input());
    let builder: RuntimeBuilder<_> = subject.states(world, Runtime::builder(store));
    let builder = builder.environment(Arc::clone(env) as Arc<_>).saga(&saga).settings(|settings| {
        settings.lease_ttl = LEASE;
        settings.member_ttl = LEASE;
        settings.poll_interval = POLL;
        settings.drain_limit = RUN_WITHIN;
        if answered.is_some() {
            // Whatever is written in the step's transaction is the step's.
            settings.run_on_max = 1;
        }
    });
    let runtime = builder.start().await.map_err(|error| error.to_string())?;
    let running = runtime.start(&saga, KEY, input).await.map_err(|error| error.to_string())?;
    let desk = runtime.desk();
    let (outcome, meanwhile) = tokio::join!(running.outcome(), subject.meanwhile(&desk, KEY));
    meanwhile.map_err(|problem| format!("what was done meanwhile: {problem}"))?;
    let mut outcome = outcome.map_err(|error| error.to_string())?;
    let is_operated = matches!(outcome, Outcome::Stuck { .. });
    if is_operated {
        life.director.lift();
        outcome = tokio::select! {
            ended = running.ended() => ended.map_err(|error| error.to_string())?,
            failed = try_again(&runtime) => return Err(failed),
        };
    }
    sent(&runtime).await?;
    runtime.shutdown().await;
    if let (Some(step), Outcome::Compensated { failed_step, .. }) = (answered, &outcome)
        && step != failed_step
    {
        return Err(format!("the input of `rejected_by` was rejected by {failed_step} instead"));
    }
    match outcome {
        Outcome::Completed { .. } => Ok((Ended::Completed, is_operated)),
        Outcome::Compensated { .. } => Ok((Ended::Compensated, is_operated)),
        stuck @ Outcome::Stuck { .. } => Err(format!("it is {stuck}")),
    }
}

/// What an operator does who knows that nothing is disturbed any more: whatever is stuck is tried again, one step after
/// the other where branches got stuck beside each other. It ends only with what is in its way.
async fn try_again<S: saga_core::store::Store>(runtime: &Runtime<S>) -> String {
    loop {
        let status = match runtime.saga(KEY).await {
            Ok(Some(status)) => status,
            Ok(None) => return "there is no saga".to_owned(),
            Err(error) => return error.to_string(),
        };
        if status.summary.status == Status::Stuck {
            let acted = match runtime.operator(KEY, status.revision) {
                Ok(operator) => operator.retry("the exploration is over").await,
                Err(error) => Err(error),
            };
            match acted {
                // Another branch moved it meanwhile.
                Ok(()) | Err(RuntimeError::Moved { .. }) => {}
                Err(error) => return error.to_string(),
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Waits until every message was sent.
async fn sent<S: saga_core::store::Store>(runtime: &Runtime<S>) -> Result<(), String> {
    for _ in 0..LOOKS_MAX {
        if runtime.store().depth().await.map_err(|error| error.to_string())?.rows == 0 {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Err("its messages were not sent".to_owned())
}

/// Neither work nor a forgotten saga stays behind.
async fn nothing_left(store: &impl saga_core::store::Store) -> Result<(), String> {
    let failed = |error: saga_core::store::StoreError| error.to_string();
    if !store.forgotten(1).await.map_err(failed)?.is_empty() {
        return Err("the saga waits for nothing".to_owned());
    }
    let key = Key::new(KEY).map_err(|error| error.to_string())?;
    let stored = store.saga_with_steps(&Tenant::default(), &key).await.map_err(failed)?;
    match stored.ok_or("there is no saga")?.work.len() {
        0 => Ok(()),
        left => Err(format!("{left} work rows are left")),
    }
}
