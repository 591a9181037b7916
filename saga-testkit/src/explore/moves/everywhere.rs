//! Which runs are made in which a saga is moved, and what is expected of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use saga_core::{Migration, Saga};

use super::super::drive::{Explorer, at_once};
use super::super::plan::Disturbance;
use super::super::report::Broken;
use super::super::{Ended, Explore, Refusal};
use super::course::{Answer, Came, Went, one_move};
use super::plan::{Manner, MoveRun, Point, THE_MOVE};
use super::report::Moves;

impl<E: Explore> Explorer<E> {
    /// Moves the saga at each boundary of its old version, in each manner. Where it is moved after a crash, it is crashed at
    /// the boundaries of the move, turns round at each step behind it, and is crashed at each boundary of all that.
    pub(in super::super) async fn move_everywhere(&mut self, migration: &Migration<E::Store>, points: &[Point]) {
        let (old, new) = migration.sagas();
        let in_transactions = old.names_in_transactions();
        let mut runs = Vec::new();
        for point in points {
            runs.extend([Manner::Crash, Manner::Stop].map(|manner| MoveRun::at(point, manner)));
            runs.extend(point.is_outside(&in_transactions).then(|| MoveRun::at(point, Manner::Beside)));
        }
        let mut moves = Moves { points: runs.len() as u64, ..Moves::default() };
        let came = self.make(migration, runs).await;
        for came in &came {
            count(&mut moves, came);
        }
        if moves.moved == 0 {
            self.broken.push(Broken {
                disturbance: "the migration".to_owned(),
                problem: format!("it moved the saga nowhere: {moves}"),
            });
        }
        self.exploration.moves = Some(moves);
        let at_crashes: Vec<Came> =
            came.into_iter().filter(|came| came.run.manner == Manner::Crash && was_moved(came)).collect();
        let further = at_crashes.iter().flat_map(|came| further(came, &new)).collect();
        let further = self.make(migration, further).await;
        let mut seen: BTreeSet<String> = [format!("before {THE_MOVE}"), format!("behind {THE_MOVE}")].into();
        let mut crashes = Vec::new();
        for came in at_crashes.iter().chain(further.iter().filter(|came| came.run.then == Disturbance::None)) {
            let new = came.passed.iter().filter(|boundary| seen.insert((*boundary).clone()));
            crashes.extend(new.map(|boundary| crash(&came.run, boundary.clone())));
        }
        self.make(migration, crashes).await;
    }

    /// Makes these runs, and judges each.
    async fn make(&mut self, migration: &Migration<E::Store>, runs: Vec<MoveRun>) -> Vec<Came> {
        let is_racing = self.is_racing();
        let subject = Arc::clone(&self.subject);
        let is_crash = |run: &&MoveRun| matches!(run.then, Disturbance::Crash { .. });
        self.exploration.crashes += runs.iter().filter(is_crash).count() as u64;
        let one = |run| one_move(Arc::clone(&subject), migration.clone(), run, is_racing);
        let mut all = Vec::new();
        for came in at_once(runs, one).await {
            match came {
                Ok(came) => {
                    self.conclude_move(&came);
                    all.push(came);
                }
                Err(panic) => self.panicked(&panic),
            }
        }
        all
    }

    fn conclude_move(&mut self, came: &Came) {
        let problem = match &came.result {
            Err(problem) => Some(problem.clone()),
            Ok((answer, finished)) => {
                self.count_end(finished);
                let expected = expected(&came.run, answer.as_ref(), finished.is_operated);
                let other = expected.filter(|expected| *expected != finished.ended);
                other.map(|expected| format!("it ended {:?} instead of {expected:?}", finished.ended))
            }
        };
        self.exploration.runs += 1;
        self.exploration.unreached += u64::from(came.is_unreached);
        self.broken.extend(problem.map(|problem| Broken { disturbance: came.run.to_string(), problem }));
    }
}

/// A saga ends in the new version as it would have in the old one, unless something happened to it on the way.
fn expected(run: &MoveRun, answer: Option<&Answer>, is_operated: bool) -> Option<Ended> {
    let is_moved = answer.is_some_and(|answer| answer.went == Went::Moved);
    let rejected = if is_moved { run.rejected } else { run.point.rejected };
    let is_straight = matches!(run.then, Disturbance::None | Disturbance::Crash { .. });
    match rejected {
        // It had turned round before it was moved, or not.
        None if is_moved && run.point.rejected.is_some() => None,
        None if is_straight => Some(Ended::Completed),
        Some(_) if is_straight && !is_operated => Some(Ended::Compensated),
        _ => None,
    }
}

fn was_moved(came: &Came) -> bool {
    matches!(&came.result, Ok((Some(answer), _)) if answer.went == Went::Moved)
}

fn count(moves: &mut Moves, came: &Came) {
    let Ok((Some(answer), _)) = &came.result else { return };
    moves.waited += u64::from(answer.has_waited);
    match &answer.went {
        Went::Moved => moves.moved += 1,
        Went::Refused(reason) => {
            moves.unmoved.push(Refusal { point: came.run.to_string(), reason: reason.clone() });
        }
    }
}

/// What else is done where a saga was moved: the move is crashed, and each step that came behind it rejects.
fn further<S: saga_core::store::Store>(came: &Came, new: &Saga<S, ()>) -> Vec<MoveRun> {
    let mut runs: Vec<MoveRun> = ["before", "behind"].map(|side| crash(&came.run, format!("{side} {THE_MOVE}"))).into();
    let steps = new.step_names();
    let began = steps.into_iter().filter(|step| came.passed.contains(&format!("before {step}")));
    runs.extend(began.map(|step| MoveRun { rejected: Some(step), ..came.run.clone() }));
    runs
}

fn crash(run: &MoveRun, boundary: String) -> MoveRun {
    MoveRun { then: Disturbance::Crash { boundary, is_amid_errors: false }, ..run.clone() }
}
