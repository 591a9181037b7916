use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use tokio::task::{Id, JoinError, JoinSet};

use super::ended::Ended;
use super::plan::{Disturbance, Point, Run};
use super::process::{Finished, Made};
use super::report::{Broken, Exploration};
use super::subject::Explore;

/// How many runs are under way at a time.
pub(super) const RUNS_AT_A_TIME: usize = 4;

/// Makes the runs of an exploration, counts them and judges them.
pub(super) struct Explorer<E: Explore> {
    pub(super) subject: Arc<E>,
    pub(super) exploration: Exploration,
    pub(super) broken: Vec<Broken>,
    /// The boundaries at which it was crashed.
    pub(super) seen: BTreeSet<String>,
    /// The same, each with the way there.
    pub(super) points: Vec<Point>,
    /// The runs in which the saga is compensated or stuck.
    pub(super) failed: Vec<Run>,
}

impl<E: Explore> Explorer<E> {
    pub(super) fn new(subject: E) -> Self {
        Self {
            subject: Arc::new(subject),
            exploration: Exploration::default(),
            broken: Vec::new(),
            seen: BTreeSet::new(),
            points: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Makes these runs, some at a time. Of each that came to an end, `judge` says what is wrong with it.
    pub(super) async fn make<R, T, F>(
        &mut self,
        runs: Vec<R>,
        one: impl Fn(Arc<E>, R, bool) -> F,
        mut judge: impl FnMut(&mut Self, &R, &T) -> Option<String>,
    ) -> Vec<Made<R, T>>
    where
        R: fmt::Display + Send + 'static,
        T: Send + 'static,
        F: Future<Output = Made<R, T>> + Send + 'static,
    {
        let is_racing = self.is_racing();
        let mut all = Vec::new();
        for made in at_once(runs, |run| one(Arc::clone(&self.subject), run, is_racing)).await {
            match made {
                Ok(made) => {
                    self.exploration.runs += 1;
                    self.exploration.unreached += u64::from(!made.is_reached);
                    let problem = match &made.result {
                        Ok(end) => judge(self, &made.run, end),
                        Err(problem) => Some(problem.clone()),
                    };
                    let disturbance = made.run.to_string();
                    self.broken.extend(problem.map(|problem| Broken { disturbance, problem }));
                    all.push(made);
                }
                Err(panicked) => self.broken.push(panicked),
            }
        }
        all
    }

    /// Counts how a run ended.
    pub(super) fn count_end(&mut self, finished: &Finished) {
        self.exploration.completed += u64::from(finished.ended == Ended::Completed);
        self.exploration.compensated += u64::from(finished.ended == Ended::Compensated);
        self.exploration.operated += u64::from(finished.is_operated);
    }

    /// Counts the runs whose process was crashed.
    pub(super) fn count_crashes<R, T>(&mut self, made: &[Made<R, T>], disturbance: impl Fn(&R) -> &Disturbance) {
        let crashed = made.iter().filter(|made| made.is_reached && disturbance(&made.run).is_crash());
        self.exploration.crashes += crashed.count() as u64;
    }

    /// Whether a run may come by other boundaries than one before it: which branch of a group comes first is another thing
    /// in each run, and what others do to the saga may come in front of it, amid of it or behind it.
    fn is_racing(&self) -> bool {
        self.subject.saga().has_branches()
            || self.seen.iter().any(|boundary| boundary.ends_with(" the note `operator`"))
    }
}

/// What is wrong with a saga that ended so, and not as expected.
pub(super) fn unless_expected(saga: &str, ended: &Ended, expected: Option<Ended>) -> Option<String> {
    let other = expected.filter(|expected| expected != ended);
    other.map(|expected| format!("{saga} ended {ended:?} instead of {expected:?}"))
}

/// Makes all of these, some at a time.
async fn at_once<R, C, F>(runs: Vec<R>, one: impl Fn(R) -> F) -> Vec<Result<C, Broken>>
where
    R: fmt::Display,
    C: Send + 'static,
    F: Future<Output = C> + Send + 'static,
{
    let (mut waiting, mut under_way, mut made) = (runs.into_iter(), JoinSet::new(), Vec::new());
    let mut disturbances = Disturbances::default();
    loop {
        while under_way.len() < RUNS_AT_A_TIME
            && let Some(run) = waiting.next()
        {
            let disturbance = run.to_string();
            disturbances.began(under_way.spawn(one(run)).id(), disturbance);
        }
        match under_way.join_next_with_id().await {
            None => return made,
            Some(ended) => made.push(disturbances.ended(ended)),
        }
    }
}

/// The runs under way, each by the task that makes it: a task that panics returns nothing.
#[derive(Default)]
pub(super) struct Disturbances(BTreeMap<Id, String>);

impl Disturbances {
    pub(super) fn began(&mut self, task: Id, disturbance: String) {
        self.0.insert(task, disturbance);
    }

    /// What a run returned, or that it panicked.
    pub(super) fn ended<C>(&mut self, ended: Result<(Id, C), JoinError>) -> Result<C, Broken> {
        match ended {
            Ok((task, made)) => {
                self.0.remove(&task);
                Ok(made)
            }
            Err(panic) => Err(Broken {
                disturbance: self.0.remove(&panic.id()).unwrap_or_default(),
                problem: format!("the exploration itself, or the audit, panicked: {panic}"),
            }),
        }
    }
}
