use std::collections::BTreeSet;
use std::sync::Arc;

use saga_core::Saga;
use saga_core::engine::{Outcome, RuntimeBuilder};
use tokio::task::{JoinError, JoinSet};

use super::life::Director;
use super::moves::Point;
use super::plan::{Disturbance, disturbances};
use super::process::{Finished, KEY, LIVES_MAX, Made, Process, Tries, finished, in_time, look_at};
use super::report::{Broken, Exploration, Failures};
use super::{Ended, Explore, Explored};

/// How many runs are under way at a time.
const RUNS_AT_A_TIME: usize = 4;

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
        points: Vec::new(),
        nothings: Vec::new(),
    };
    let steps = explorer.steps().await;
    let undone = explorer.crash_everywhere(&steps).await;
    let mut disturbed = disturbances(&steps, &undone);
    let batch_steps = explorer.subject.saga().batch_step_names();
    let rejecting = batch_steps.into_iter().filter(|step| explorer.subject.rejected_by(step).is_some());
    disturbed.extend(rejecting.map(|step| (None, Disturbance::Answered { step })));
    explorer.run_all(disturbed).await;
    if let Some(migration) = explorer.subject.migration() {
        let points = std::mem::take(&mut explorer.points);
        explorer.move_everywhere(&migration, &points).await;
    }
    if explorer.subject.restarts() {
        let nothings = std::mem::take(&mut explorer.nothings);
        explorer.restart_everywhere(&nothings).await;
    }
    let Explorer { exploration, broken, .. } = explorer;
    if broken.is_empty() { Ok(exploration) } else { Err(Failures { broken, exploration }) }
}

pub(super) struct Explorer<E: Explore> {
    pub(super) subject: Arc<E>,
    pub(super) exploration: Exploration,
    pub(super) broken: Vec<Broken>,
    /// The boundaries at which it was crashed.
    seen: BTreeSet<String>,
    /// The same, each with the way there.
    points: Vec<Point>,
    /// The runs in which it comes to nothing, or is stuck.
    nothings: Vec<Run>,
}

/// What is done in one run: which step rejects, and what is disturbed.
pub(super) type Run = (Option<&'static str>, Disturbance);

/// What came of one run.
struct Came {
    run: Run,
    passed: Vec<String>,
    result: Result<Finished, String>,
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
            self.points.extend(new.iter().cloned().map(|boundary| Point { rejected, is_amid_errors, boundary }));
            let crash = |boundary| Disturbance::Crash { boundary, is_amid_errors };
            self.run_all(new.into_iter().map(|boundary| (rejected, crash(boundary))).collect()).await;
        }
        undone
    }

    /// Runs all of them, some at a time; answers the boundaries that they passed.
    async fn run_all(&mut self, runs: Vec<Run>) -> Vec<String> {
        let mut passed = Vec::new();
        let (subject, is_racing) = (Arc::clone(&self.subject), self.is_racing());
        for came in at_once(runs, |run| one_run(Arc::clone(&subject), run, is_racing)).await {
            match came {
                Ok(came) => {
                    passed.extend(came.passed.iter().cloned());
                    self.conclude(came);
                }
                Err(panic) => self.panicked(&panic),
            }
        }
        passed
    }

    /// Whether a run may come by other boundaries than one before it: which branch of a group comes first is another thing
    /// in each run, and what others do to the saga may come in front of it, amid of it or behind it.
    pub(super) fn is_racing(&self) -> bool {
        self.subject.saga().has_branches()
            || self.seen.iter().any(|boundary| boundary.ends_with(" the note `operator`"))
    }

    pub(super) fn panicked(&mut self, panic: &JoinError) {
        self.broken.push(Broken {
            disturbance: "a run".to_owned(),
            problem: format!("the exploration itself, or the audit, panicked: {panic}"),
        });
    }

    pub(super) fn count_end(&mut self, finished: &Finished) {
        self.exploration.completed += u64::from(finished.ended == Ended::Completed);
        self.exploration.compensated += u64::from(finished.ended == Ended::Compensated);
        self.exploration.operated += u64::from(finished.is_operated);
    }

    fn conclude(&mut self, came: Came) {
        self.exploration.runs += 1;
        self.exploration.unreached += u64::from(came.is_unreached);
        let problem = match came.result {
            Err(problem) => Some(problem),
            Ok(finished) => {
                self.count_end(&finished);
                let (is_compensated, disturbance) = (finished.ended == Ended::Compensated, &came.run.1);
                let is_plain = is_compensated && *disturbance == Disturbance::None;
                let is_crash = matches!(disturbance, Disturbance::Crash { .. });
                if is_plain || (finished.is_operated && !is_crash) {
                    self.nothings.push(came.run.clone());
                }
                self.exploration.compared += u64::from(matches!(came.run.1, Disturbance::Answered { .. }));
                unexpected(&came.run, &finished)
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
fn unexpected(run: &Run, Finished { ended, is_operated }: &Finished) -> Option<String> {
    let expected = match run {
        (None, Disturbance::None | Disturbance::Crash { .. }) => Ended::Completed,
        (Some(_), Disturbance::None | Disturbance::Crash { .. }) if !*is_operated => Ended::Compensated,
        (_, Disturbance::Answered { .. }) => Ended::Compensated,
        _ => return None,
    };
    (*ended != expected).then(|| format!("it ended {ended:?} instead of {expected:?}"))
}

/// Makes all of these, some at a time.
pub(super) async fn at_once<R, C, F>(runs: Vec<R>, one: impl Fn(R) -> F) -> Vec<Result<C, JoinError>>
where
    C: Send + 'static,
    F: Future<Output = C> + Send + 'static,
{
    let (mut waiting, mut under_way, mut came) = (runs.into_iter(), JoinSet::new(), Vec::new());
    loop {
        while under_way.len() < RUNS_AT_A_TIME
            && let Some(run) = waiting.next()
        {
            under_way.spawn(one(run));
        }
        match under_way.join_next().await {
            None => return came,
            Some(one) => came.push(one),
        }
    }
}

async fn one_run<E: Explore>(subject: Arc<E>, run: Run, is_racing: bool) -> Came {
    let mut tries = Tries::new(is_racing);
    loop {
        let commits = tries.begin();
        let director = Arc::new(Director::new(run.0, run.1.clone(), commits));
        let mut result = in_time(live(&subject, &director)).await;
        if let (Ok(_), Some(written)) = (&result, director.written()) {
            result = Err(format!("something was written for the input that was rejected: {written}"));
        }
        let made = Made { result, passed: director.passed(), is_reached: director.is_done() };
        if let Some(Made { result, passed, is_reached }) = tries.end(made) {
            return Came { run, passed, result, is_unreached: !is_reached };
        }
    }
}

/// Lives as often as it takes, and judges what is there in the end.
async fn live<E: Explore>(subject: &Arc<E>, director: &Arc<Director>) -> Result<Finished, String> {
    let world = Arc::new(subject.fresh().await);
    let look = look_at(subject, &world);
    for seed in 0..LIVES_MAX {
        let process = Process::new((&**subject, &*world), director, &look, seed);
        if let Some(finished) = process.live(one_life(&process, None)).await? {
            process.judge(&finished.ended).await?;
            return Ok(finished);
        }
    }
    Err("it crashed again and again".to_owned())
}

/// One life of a process that has the saga, and perhaps another version of it.
pub(super) async fn one_life<E: Explore>(
    process: &Process<'_, E>,
    other: Option<&Saga<Explored<E::Store>, ()>>,
) -> Result<Finished, String> {
    let subject = process.subject;
    let saga = subject.saga().instrumented::<Explored<E::Store>>(&process.hook());
    let answered = match process.life.director.disturbance {
        Disturbance::Answered { step } => Some(step),
        _ => None,
    };
    let input = answered.and_then(|step| subject.rejected_by(step)).unwrap_or_else(|| subject.input());
    let opened = process.open(|builder| {
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
    let (outcome, is_operated) = process.bring_to_end(&runtime, &running).await?;
    runtime.shutdown().await;
    if let (Some(step), Outcome::Compensated { failed_step, .. }) = (answered, &outcome)
        && step != failed_step
    {
        return Err(format!("the input of `rejected_by` was rejected by {failed_step} instead"));
    }
    finished((outcome, is_operated))
}
