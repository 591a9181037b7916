use super::{Mapping, SagaProblem, StepDefinition};
use crate::machine::{Effect, StepShape, UndoShape};
use crate::step::{Handler, NeededOutput, Run};
use crate::store::Store;

/// The most items of a list that may be under way at once.
const AT_ONCE_MAX: usize = 64;

/// What a saga is made of, while it is built.
pub(super) struct Parts<S: Store> {
    pub(super) steps: Vec<StepDefinition<S>>,
    pub(super) shapes: Vec<StepShape>,
    pub(super) pivot: Option<usize>,
    pub(super) problems: Vec<SagaProblem>,
    /// The steps that the next one comes after.
    pub(super) tips: Vec<usize>,
    /// How many steps can be under way at once in the chain that is built.
    pub(super) width: usize,
    /// How many groups stand around the next step.
    pub(super) depth: usize,
}

impl<S: Store> Parts<S> {
    pub(super) fn new(problem: Option<SagaProblem>) -> Self {
        Self {
            steps: Vec::new(),
            shapes: Vec::new(),
            pivot: None,
            problems: problem.into_iter().collect(),
            tips: Vec::new(),
            width: 1,
            depth: 0,
        }
    }

    pub(super) fn add<T: Handler<S>>(&mut self, input: Option<Mapping>, earlier: &[NeededOutput]) {
        let step = StepDefinition::of::<T>(input, earlier.iter().map(|needed| needed.step).collect());
        let shape = step.shape::<T>();
        self.add_shaped(step, shape, earlier);
    }

    /// Adds a step that is done for each item of the list that the mapping gives.
    pub(super) fn add_each<T: Handler<S>>(&mut self, at_once: usize, list: Mapping, earlier: &[NeededOutput]) {
        let problem = match T::handler() {
            _ if !(1..=AT_ONCE_MAX).contains(&at_once) => Some("for so many items at once: 1 to 64"),
            Run::Remote { .. } => Some(
                "for each item here, not in another service: let a step of this service ask the other one, or give the whole list to one step there",
            ),
            _ => None,
        };
        self.problems.extend(problem.map(|remedy| SagaProblem::Each { step: T::NAME, remedy }));
        let step = StepDefinition::of::<T>(Some(list), earlier.iter().map(|needed| needed.step).collect());
        let shape = StepShape { each: Some(at_once), ..step.shape::<T>() };
        self.add_shaped(step.for_each::<T>(), shape, earlier);
        // Whatever is done for each of a list is under way beside others, as far as the engine goes.
        self.width = self.width.max(at_once).max(2);
    }

    pub(super) fn add_shaped(&mut self, step: StepDefinition<S>, mut shape: StepShape, earlier: &[NeededOutput]) {
        let index = self.steps.len();
        let tips = std::mem::replace(&mut self.tips, vec![index]);
        let just_before: Vec<usize> = index.checked_sub(1).into_iter().collect();
        // A shape says only what is not plain, so that a saga without groups has the shape that it always had.
        let after = (tips != just_before).then_some(tips);
        let name = step.name;
        shape.after = after;
        self.shapes.push(shape);
        self.steps.push(step);
        for &needed in earlier {
            self.check_needed(name, needed, index);
        }
    }

    pub(super) fn mark_pivot(&mut self) {
        let problem = match (self.steps.len().checked_sub(1), self.pivot) {
            _ if self.depth > 0 => {
                "`.pivot()` stands inside a parallel group; the pivot runs alone, so put it in front of the group or behind it"
            }
            (None, _) => "`.pivot()` stands before the first step; put it behind one",
            (Some(_), Some(_)) => "`.pivot()` stands behind two steps; a saga has one pivot",
            (Some(_), None) if self.tips.len() > 1 => {
                "`.pivot()` stands behind a parallel group; the pivot is one step, so put a step between them"
            }
            (Some(last), None) if self.shapes[last].each.is_some() => {
                "`.pivot()` stands behind a step that is done for each item of a list; the pivot is one step, so put a step between them"
            }
            (Some(last), None) if matches!(self.shapes[last].effect, Effect::Own | Effect::Signal) => {
                "`.pivot()` stands behind a step that only waits; the pivot is a step that does something, so put it behind one"
            }
            (last, None) => {
                self.pivot = last;
                return;
            }
        };
        self.problems.push(SagaProblem::Pivot(problem));
    }

    /// Whether a step certainly runs before the one of that index.
    fn check_needed(&mut self, step: &'static str, needed: NeededOutput, index: usize) {
        self.problems.extend(self.problem_with(step, needed, index));
    }

    fn problem_with(&self, step: &'static str, needed: NeededOutput, index: usize) -> Option<SagaProblem> {
        let NeededOutput { step: needed, is_each, .. } = needed;
        match self.steps[..index].iter().position(|other| other.name == needed) {
            None => Some(SagaProblem::LateOutput { step, needed }),
            Some(earlier) if !is_behind(&self.shapes, index, earlier) => {
                Some(SagaProblem::SiblingOutput { step, needed })
            }
            Some(earlier) => match (self.shapes[earlier].each, is_each) {
                (Some(_), false) => Some(SagaProblem::OutputOfEach { step, needed }),
                (None, true) => Some(SagaProblem::OutputOfOne { step, needed }),
                _ => None,
            },
        }
    }

    pub(super) fn check_order(&mut self) {
        let mut problems = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            if self.steps[..index].iter().any(|other| other.name == step.name) {
                problems.push(SagaProblem::DuplicateStep { step: step.name });
            }
            problems
                .extend(step.needs.outputs.iter().filter_map(|needed| self.problem_with(step.name, *needed, index)));
        }
        self.problems.extend(problems);
    }

    /// A last step without a compensation is the pivot where none is declared: behind it nothing can fail any more. A
    /// group has no last step: beside each other step of it one may fail.
    pub(super) fn check_compensations(&mut self) {
        let last = self.steps.len().saturating_sub(1);
        let ends_with_one = self.tips.len() == 1;
        if self.pivot.is_none()
            && ends_with_one
            && self.shapes.last().is_some_and(|step| step.undo == UndoShape::Missing && step.each.is_none())
        {
            self.pivot = Some(last);
        }
        let before_pivot = self.pivot.unwrap_or(self.shapes.len());
        for step in self.shapes[..before_pivot].iter().filter(|step| step.undo == UndoShape::Missing) {
            self.problems.push(SagaProblem::NoCompensation { step: step.name });
        }
    }
}

/// Whether a step only begins when the earlier one is done.
fn is_behind(shapes: &[StepShape], later: usize, earlier: usize) -> bool {
    let mut open = vec![later];
    let mut seen = vec![false; shapes.len()];
    while let Some(step) = open.pop() {
        if step == earlier {
            return true;
        }
        if std::mem::replace(&mut seen[step], true) {
            continue;
        }
        match &shapes[step].after {
            Some(after) => open.extend(after),
            None => open.extend(step.checked_sub(1)),
        }
    }
    false
}
