//! Where the semantic locks of a definition may stand.

use super::SagaProblem;
use super::parts::{Parts, is_behind};
use crate::store::Store;

impl<S: Store> Parts<S> {
    /// The last added step ends the lock of that name.
    pub(super) fn add_release(&mut self, lock: &'static str) {
        if let Some(last) = self.shapes.last_mut().filter(|_| self.tips.len() == 1) {
            return last.releases.push(lock);
        }
        let problem = "`.release` stands behind no single step; put it behind the step with which the lock ends";
        self.problems.push(SagaProblem::SemanticLock { lock, problem });
    }

    /// Checks the locks and their ends when every step is added and the pivot is known.
    pub(super) fn check_locks(&mut self) {
        let mut problems = Vec::new();
        for (index, (shape, step)) in self.shapes.iter().zip(&self.steps).enumerate() {
            let is_behind_pivot = self.pivot.is_some_and(|pivot| index > pivot);
            if is_behind_pivot && shape.lock {
                let problem = "it stands behind the pivot, where a saga only goes forward and could not turn round if it \
                               waited too long or in a deadlock; put it in front of the pivot";
                problems.push(SagaProblem::SemanticLock { lock: shape.name, problem });
            }
            if is_behind_pivot && step.saga().is_some_and(|child| child.takes_locks) {
                let problem =
                    "it takes semantic locks and stands behind the pivot, where a saga only goes forward and could \
                               not turn round if it waited too long or in a deadlock; put it in front of the pivot"
                        .to_owned();
                problems.push(SagaProblem::SubSaga { step: shape.name, problem });
            }
            for &lock in &shape.releases {
                let taken = self.shapes.iter().position(|step| step.lock && step.name == lock);
                let problem = match taken {
                    None => "it is ended by `.release`, but not taken; add `.semantic_lock` with it in front",
                    Some(taken) if !is_behind(&self.shapes, index, taken) || taken == index => {
                        "it is ended by `.release` behind a step that may run before it is taken"
                    }
                    Some(_) if self.pivot.is_none_or(|pivot| index < pivot) => {
                        "it is ended by `.release` before the pivot, where the saga may still undo what the lock protects; \
                         put `.release` behind the pivot, or leave it out: the lock ends with the saga"
                    }
                    Some(_) => continue,
                };
                problems.push(SagaProblem::SemanticLock { lock, problem });
            }
        }
        self.problems.extend(problems);
    }
}
