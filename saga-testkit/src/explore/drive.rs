use std::sync::Arc;

use super::ended::Ended;
use super::explorer::{Explorer, unless_expected};
use super::life::Director;
use super::moves::move_everywhere;
use super::plan::{Disturbance, Point, Run, disturbances};
use super::process::{Finished, LIVES_MAX, Made, Process, Tries, look_at};
use super::report::{Exploration, Failures};
use super::restarts::restart_everywhere;
use super::subject::Explore;
use super::world::{fresh, in_time};
use crate::VirtualTime;

/// Explores a saga. It takes about as many runs as the saga has boundaries and disturbances of its functions. The tokio
/// runtime of the caller needs timers.
///
/// # Errors
/// The runs that did not end, had the wrong end, failed the audit, or did not reach the point to disturb.
///
/// # Cancel safety
/// Dropping it ends the runs; their worlds are dropped.
pub async fn explore<E: Explore>(subject: E) -> Result<Exploration, Failures> {
    let mut explorer = Explorer::new(subject);
    let steps = steps(&mut explorer).await;
    let undone = crash_everywhere(&mut explorer, &steps).await;
    let mut disturbed = disturbances(&steps, &undone);
    let batch_steps = explorer.subject.saga().batch_step_names();
    let rejecting = batch_steps.into_iter().filter(|step| explorer.subject.rejected_by(step).is_some());
    disturbed.extend(rejecting.map(|step| Run { rejected: None, disturbance: Disturbance::Answered { step } }));
    run_all(&mut explorer, disturbed).await;
    if let Some(migration) = explorer.subject.migration() {
        move_everywhere(&mut explorer, &migration).await;
    }
    if explorer.subject.restarts() {
        restart_everywhere(&mut explorer).await;
    }
    let Explorer { exploration, broken, .. } = explorer;
    if broken.is_empty() { Ok(exploration) } else { Err(Failures { broken, exploration }) }
}

/// The steps that are disturbed: those in arms that this input does not take cannot be.
async fn steps<E: Explore>(explorer: &mut Explorer<E>) -> Vec<&'static str> {
    let saga = explorer.subject.saga();
    let (mut steps, in_arms) = (saga.step_names(), saga.names_in_arms());
    if !in_arms.is_empty() {
        let passed = run_all(explorer, vec![Run { rejected: None, disturbance: Disturbance::None }]).await;
        let is_left_out = |step: &&'static str| in_arms.contains(step) && !passed.contains(&format!("before {step}"));
        explorer.exploration.left_out = steps.extract_if(.., |step| is_left_out(&*step)).collect();
    }
    steps
}

/// Lets the saga run in each direction, and crashes it at each boundary that it passes. Answers which steps are
/// undone, each with a step that makes it so by rejecting.
async fn crash_everywhere<E: Explore>(
    explorer: &mut Explorer<E>,
    steps: &[&'static str],
) -> Vec<(&'static str, &'static str)> {
    let mut undone: Vec<(&'static str, &'static str)> = Vec::new();
    let forward = [Disturbance::None, Disturbance::FailEachOnce].map(|disturbance| Run { rejected: None, disturbance });
    let back = steps.iter().map(|step| Run { rejected: Some(*step), disturbance: Disturbance::None });
    for base in forward.into_iter().chain(back) {
        let rejected = base.rejected;
        let is_amid_errors = base.disturbance == Disturbance::FailEachOnce;
        let passed = run_all(explorer, vec![base]).await;
        for step in steps {
            let is_undone = passed.contains(&format!("before {step}:undo"));
            if let (Some(rejected), true) = (rejected, is_undone && !undone.iter().any(|(known, _)| known == step)) {
                undone.push((step, rejected));
            }
        }
        let new: Vec<String> = passed.into_iter().filter(|boundary| explorer.seen.insert(boundary.clone())).collect();
        explorer.exploration.boundaries.extend(new.iter().cloned());
        explorer.points.extend(new.iter().cloned().map(|boundary| Point { rejected, is_amid_errors, boundary }));
        let crash = |boundary| Run { rejected, disturbance: Disturbance::Crash { boundary, is_amid_errors } };
        run_all(explorer, new.into_iter().map(crash).collect()).await;
    }
    undone
}

/// Makes these runs; answers the boundaries that they passed.
async fn run_all<E: Explore>(explorer: &mut Explorer<E>, runs: Vec<Run>) -> Vec<String> {
    let made = explorer.make(runs, one_run, judge).await;
    explorer.count_crashes(&made, |run| &run.disturbance);
    made.into_iter().flat_map(|made| made.passed).collect()
}

fn judge<E: Explore>(explorer: &mut Explorer<E>, run: &Run, finished: &Finished) -> Option<String> {
    explorer.count_end(finished);
    let is_plain = finished.ended == Ended::Compensated && run.disturbance == Disturbance::None;
    if is_plain || (finished.is_operated && !run.disturbance.is_crash()) {
        explorer.failed.push(run.clone());
    }
    explorer.exploration.compared += u64::from(matches!(run.disturbance, Disturbance::Answered { .. }));
    unless_expected("it", &finished.ended, expected(run, finished.is_operated))
}

/// A crash changes nothing about how a saga ends. Amid errors it may end either way: a step may have one attempt only.
fn expected(run: &Run, is_operated: bool) -> Option<Ended> {
    match (run.rejected, &run.disturbance) {
        (_, Disturbance::Crash { is_amid_errors: true, .. }) => None,
        (None, Disturbance::None | Disturbance::Crash { .. }) => Some(Ended::Completed),
        (Some(_), Disturbance::None | Disturbance::Crash { .. }) if !is_operated => Some(Ended::Compensated),
        (_, Disturbance::Answered { .. }) => Some(Ended::Compensated),
        _ => None,
    }
}

async fn one_run<E: Explore>(subject: Arc<E>, run: Run, is_racing: bool) -> Made<Run, Finished> {
    let mut tries = Tries::new(is_racing);
    loop {
        let director = Arc::new(Director::new(run.rejected, run.disturbance.clone(), tries.begin()));
        let time = VirtualTime::new();
        let mut result = in_time(&time, live(&subject, &time, &director)).await;
        if let (Ok(_), Some(written)) = (&result, director.written()) {
            result = Err(format!("something was written for the input that was rejected: {written}"));
        }
        let (run, passed, is_reached) = (run.clone(), director.passed(), director.is_done());
        if let Some(made) = tries.end(Made { run, result, passed, is_reached }) {
            return made;
        }
    }
}

/// Lives as often as it takes, and judges what is there in the end.
async fn live<E: Explore>(subject: &Arc<E>, time: &VirtualTime, director: &Arc<Director>) -> Result<Finished, String> {
    let world = Arc::new(fresh(&**subject, time).await?);
    let look = look_at(subject, &world);
    for seed in 0..LIVES_MAX {
        let process = Process::new((&**subject, &*world, time), director, &look, seed);
        if let Some(finished) = process.live(process.run_saga(None)).await? {
            process.judge(&finished.ended).await?;
            return Ok(finished);
        }
    }
    Err("it crashed again and again".to_owned())
}
