//! Which runs are made in which a saga is started instead of another one, and what is expected of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::drive::{Explorer, Run, at_once};
use super::super::plan::Disturbance;
use super::super::process::Finished;
use super::super::report::Broken;
use super::super::{Ended, Explore, Refusal};
use super::course::{Came, Went, one_restart};
use super::plan::RestartRun;
use super::report::Restarts;

impl<E: Explore> Explorer<E> {
    /// Starts a saga instead of each that has come to nothing, from each step. Where that is allowed, each step of the new
    /// saga rejects in turn, and the process is crashed at each boundary of all that.
    pub(in super::super) async fn restart_everywhere(&mut self, bases: &[Run]) {
        let steps = self.subject.saga().names();
        let runs = bases.iter().flat_map(|base| {
            let at = |from| RestartRun { base: base.clone(), from, rejected: None, then: Disturbance::None };
            steps.iter().copied().map(at)
        });
        let runs: Vec<RestartRun> = runs.collect();
        let mut restarts = Restarts { tried: runs.len() as u64, ..Restarts::default() };
        let mut begun = Vec::new();
        for came in self.restart(runs, &mut restarts).await {
            match &came.result {
                Ok(Went::Refused(reason)) => {
                    restarts.refused.push(Refusal { point: came.run.to_string(), reason: reason.clone() });
                }
                Ok(Went::Restarted { .. }) => begun.push(came),
                Err(_) => {}
            }
        }
        restarts.begun = begun.len() as u64;
        if begun.is_empty() {
            let problem = format!("no saga was started instead of another one: {restarts}");
            self.broken.push(Broken { disturbance: "the restarts".to_owned(), problem });
        }
        let functions = self.subject.saga().step_names();
        let rejecting = begun.iter().flat_map(|came| {
            let run = functions.iter().filter(|step| came.passed.contains(&format!("before {step}")));
            run.map(|step| RestartRun { rejected: Some(step), ..came.run.clone() })
        });
        let rejecting = rejecting.collect();
        begun.extend(self.restart(rejecting, &mut restarts).await);
        let mut seen = BTreeSet::new();
        let mut crashes = Vec::new();
        for came in begun {
            let new = came.passed.iter().filter(|boundary| seen.insert((came.run.from, (*boundary).clone())));
            let crash = |boundary: &String| Disturbance::Crash { boundary: boundary.clone(), is_amid_errors: false };
            crashes.extend(new.map(|boundary| RestartRun { then: crash(boundary), ..came.run.clone() }));
        }
        self.exploration.crashes += crashes.len() as u64;
        self.restart(crashes, &mut restarts).await;
        self.exploration.restarts = Some(restarts);
    }

    /// Makes these runs, and judges each.
    async fn restart(&mut self, runs: Vec<RestartRun>, restarts: &mut Restarts) -> Vec<Came> {
        let (subject, is_racing) = (Arc::clone(&self.subject), self.is_racing());
        let mut all = Vec::new();
        for came in at_once(runs, |run| one_restart(Arc::clone(&subject), run, is_racing)).await {
            match came {
                Ok(came) => {
                    self.conclude_restart(&came, restarts);
                    all.push(came);
                }
                Err(panic) => self.panicked(&panic),
            }
        }
        all
    }

    fn conclude_restart(&mut self, came: &Came, restarts: &mut Restarts) {
        let problem = match &came.result {
            Err(problem) => Some(problem.clone()),
            Ok(Went::Refused(_)) => None,
            Ok(Went::Restarted { restarted, is_operated }) => {
                let ended = restarted.ended().clone();
                restarts.mixed += u64::from(restarted.amounts_to().is_none());
                let finished = Finished { ended: ended.clone(), is_operated: *is_operated };
                self.count_end(&finished);
                let expected = expected(&came.run, *is_operated).filter(|expected| *expected != ended);
                expected.map(|expected| format!("the new saga ended {ended:?} instead of {expected:?}"))
            }
        };
        self.exploration.runs += 1;
        self.exploration.unreached += u64::from(came.is_unreached);
        self.broken.extend(problem.map(|problem| Broken { disturbance: came.run.to_string(), problem }));
    }
}

/// What the old saga came to is no reason for the new one to do so.
fn expected(run: &RestartRun, is_operated: bool) -> Option<Ended> {
    match run.rejected {
        None => Some(Ended::Completed),
        Some(_) if !is_operated => Some(Ended::Compensated),
        Some(_) => None,
    }
}
