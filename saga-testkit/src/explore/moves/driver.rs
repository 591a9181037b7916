//! Which runs are made in which a saga is moved, and what is expected of them.

use std::collections::BTreeSet;

use saga_core::store::Store;
use saga_core::{Migration, Saga};

use super::super::ended::Ended;
use super::super::explorer::{Explorer, unless_expected};
use super::super::plan::Disturbance;
use super::super::process::Made;
use super::super::refusal::Refusal;
use super::super::report::Broken;
use super::super::subject::Explore;
use super::plan::{Manner, MoveRun, THE_MOVE};
use super::report::Moves;
use super::run::{Answer, End, Went, one_move};

/// Moves the saga at each boundary of its old version, in each manner. Where it is moved after a crash, it is crashed at
/// the boundaries of the move, compensates from each step behind it, and is crashed at each boundary of all that.
pub(in super::super) async fn move_everywhere<E: Explore>(explorer: &mut Explorer<E>, migration: &Migration<E::Store>) {
    let (old, new) = migration.sagas();
    let in_transactions = old.names_in_transactions();
    let mut runs = Vec::new();
    for point in std::mem::take(&mut explorer.points) {
        runs.extend([Manner::Crash, Manner::Stop].map(|manner| MoveRun::at(&point, manner)));
        runs.extend(point.is_outside(&in_transactions).then(|| MoveRun::at(&point, Manner::Beside)));
    }
    let mut moves = Moves { points: runs.len() as u64, ..Moves::default() };
    let made = make(explorer, migration, runs).await;
    for made in &made {
        count(&mut moves, made);
    }
    if moves.moved == 0 {
        explorer.broken.push(Broken {
            disturbance: "the migration".to_owned(),
            problem: format!("it moved the saga nowhere: {moves}"),
        });
    }
    explorer.exploration.moves = Some(moves);
    let at_crashes: Vec<_> =
        made.into_iter().filter(|made| made.run.manner == Manner::Crash && was_moved(made)).collect();
    let further = at_crashes.iter().flat_map(|made| further(made, &new)).collect();
    let further = make(explorer, migration, further).await;
    let mut seen: BTreeSet<String> = [format!("before {THE_MOVE}"), format!("behind {THE_MOVE}")].into();
    let mut crashes = Vec::new();
    for made in at_crashes.iter().chain(further.iter().filter(|made| made.run.then == Disturbance::None)) {
        let new = made.passed.iter().filter(|boundary| seen.insert((*boundary).clone()));
        crashes.extend(new.map(|boundary| crash(&made.run, boundary.clone())));
    }
    make(explorer, migration, crashes).await;
}

/// Makes these runs, and judges each.
async fn make<E: Explore>(
    explorer: &mut Explorer<E>,
    migration: &Migration<E::Store>,
    runs: Vec<MoveRun>,
) -> Vec<Made<MoveRun, End>> {
    let one = |subject, run, is_racing| one_move(subject, migration.clone(), run, is_racing);
    let made = explorer
        .make(runs, one, |explorer, run, (answer, finished)| {
            explorer.count_end(finished);
            unless_expected("it", &finished.ended, expected(run, answer.as_ref(), finished.is_operated))
        })
        .await;
    explorer.count_crashes(&made, |run| &run.then);
    made
}

/// A saga ends in the new version as it would have in the old one, unless something happened to it on the way.
fn expected(run: &MoveRun, answer: Option<&Answer>, is_operated: bool) -> Option<Ended> {
    let is_moved = answer.is_some_and(|answer| answer.went == Went::Moved);
    let rejected = if is_moved { run.rejected } else { run.point.rejected };
    let is_straight = matches!(run.then, Disturbance::None | Disturbance::Crash { .. });
    match rejected {
        // It may have started compensating before it was moved.
        None if run.point.is_amid_errors || (is_moved && run.point.rejected.is_some()) => None,
        None if is_straight => Some(Ended::Completed),
        Some(_) if is_straight && !is_operated => Some(Ended::Compensated),
        _ => None,
    }
}

fn was_moved(made: &Made<MoveRun, End>) -> bool {
    matches!(&made.result, Ok((Some(answer), _)) if answer.went == Went::Moved)
}

fn count(moves: &mut Moves, made: &Made<MoveRun, End>) {
    let Ok((Some(answer), _)) = &made.result else { return };
    moves.waited += u64::from(answer.has_waited);
    match &answer.went {
        Went::Moved => moves.moved += 1,
        Went::Refused(reason) => {
            moves.unmoved.push(Refusal { point: made.run.to_string(), reason: reason.clone() });
        }
    }
}

/// What else is done where a saga was moved: the move is crashed, and each step behind it rejects.
fn further<S: Store>(made: &Made<MoveRun, End>, new: &Saga<S, ()>) -> Vec<MoveRun> {
    let mut runs: Vec<MoveRun> = ["before", "behind"].map(|side| crash(&made.run, format!("{side} {THE_MOVE}"))).into();
    let steps = new.step_names();
    let began = steps.into_iter().filter(|step| made.passed.contains(&format!("before {step}")));
    runs.extend(began.map(|step| MoveRun { rejected: Some(step), ..made.run.clone() }));
    runs
}

fn crash(run: &MoveRun, boundary: String) -> MoveRun {
    MoveRun { then: Disturbance::Crash { boundary, is_amid_errors: false }, ..run.clone() }
}
