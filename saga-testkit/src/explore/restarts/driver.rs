//! Which runs are made in which a saga is restarted, and what is expected of them.

use std::collections::BTreeSet;

use super::super::ended::Ended;
use super::super::explorer::{Explorer, unless_expected};
use super::super::plan::Disturbance;
use super::super::process::{Finished, Made};
use super::super::refusal::Refusal;
use super::super::report::Broken;
use super::super::subject::Explore;
use super::plan::RestartRun;
use super::report::Restarts;
use super::run::{Went, one_restart};

/// Restarts each saga that was compensated or stuck, from each step. Where that is allowed, each step of the new saga
/// rejects in turn, and the process is crashed at each boundary of all that.
pub(in super::super) async fn restart_everywhere<E: Explore>(explorer: &mut Explorer<E>) {
    let steps = explorer.subject.saga().names();
    let failed = std::mem::take(&mut explorer.failed);
    let runs = failed.iter().flat_map(|base| {
        let at = |from| RestartRun { base: base.clone(), from, rejected: None, then: Disturbance::None };
        steps.iter().copied().map(at)
    });
    let runs: Vec<RestartRun> = runs.collect();
    let mut restarts = Restarts { tried: runs.len() as u64, ..Restarts::default() };
    let mut begun = Vec::new();
    for made in make(explorer, runs, &mut restarts).await {
        match &made.result {
            Ok(Went::Refused(reason)) => {
                restarts.refused.push(Refusal { point: made.run.to_string(), reason: reason.clone() });
            }
            Ok(Went::Restarted { .. }) => begun.push(made),
            Err(_) => {}
        }
    }
    restarts.begun = begun.len() as u64;
    if begun.is_empty() {
        let problem = format!("no saga was started instead of another one: {restarts}");
        explorer.broken.push(Broken { disturbance: "the restarts".to_owned(), problem });
    }
    let functions = explorer.subject.saga().step_names();
    let rejecting = begun.iter().flat_map(|made| {
        let run = functions.iter().filter(|step| made.passed.contains(&format!("before {step}")));
        run.map(|step| RestartRun { rejected: Some(step), ..made.run.clone() })
    });
    let rejecting = rejecting.collect();
    begun.extend(make(explorer, rejecting, &mut restarts).await);
    let mut seen = BTreeSet::new();
    let mut crashes = Vec::new();
    for made in begun {
        let new = made.passed.iter().filter(|boundary| seen.insert((made.run.from, (*boundary).clone())));
        let crash = |boundary: &String| Disturbance::Crash { boundary: boundary.clone(), is_amid_errors: false };
        crashes.extend(new.map(|boundary| RestartRun { then: crash(boundary), ..made.run.clone() }));
    }
    make(explorer, crashes, &mut restarts).await;
    explorer.exploration.restarts = Some(restarts);
}

/// Makes these runs, and judges each.
async fn make<E: Explore>(
    explorer: &mut Explorer<E>,
    runs: Vec<RestartRun>,
    restarts: &mut Restarts,
) -> Vec<Made<RestartRun, Went>> {
    let made = explorer
        .make(runs, one_restart, |explorer, run, went| {
            let Went::Restarted { restarted, is_operated } = went else { return None };
            let (ended, is_operated) = (restarted.ended().clone(), *is_operated);
            restarts.mixed += u64::from(restarted.amounts_to().is_none());
            explorer.count_end(&Finished { ended: ended.clone(), is_operated });
            unless_expected("the new saga", &ended, expected(run, is_operated))
        })
        .await;
    explorer.count_crashes(&made, |run| &run.then);
    made
}

/// What the old saga came to is no reason for the new one to do so.
fn expected(run: &RestartRun, is_operated: bool) -> Option<Ended> {
    match run.rejected {
        None => Some(Ended::Completed),
        Some(_) if !is_operated => Some(Ended::Compensated),
        Some(_) => None,
    }
}
