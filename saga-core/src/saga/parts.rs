use std::sync::Arc;

use super::{Definition, Mapping, SagaProblem, StepDefinition, SubSaga};
use crate::key::check_step_name;
use crate::machine::{ArmOf, Effect, StepShape, UndoShape};
use crate::step::{Handler, NeededOutput};
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
    /// How many groups and choices stand around the next step.
    pub(super) depth: usize,
    /// The arm that the next step stands in.
    pub(super) within: Option<ArmOf>,
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
            within: None,
        }
    }

    pub(super) fn add<T: Handler<S>>(&mut self, input: Option<Mapping>, earlier: &[NeededOutput]) {
        let step = StepDefinition::of::<T>(input, earlier.iter().map(|needed| needed.step).collect());
        let shape = step.shape::<T>();
        self.add_shaped(step, shape, earlier);
    }

    /// Adds a step that is done for each item of the list that the mapping gives.
    pub(super) fn add_each<T: Handler<S>>(&mut self, at_once: usize, list: Mapping, earlier: &[NeededOutput]) {
        if !(1..=AT_ONCE_MAX).contains(&at_once) {
            self.problems.push(SagaProblem::Each { step: T::NAME, remedy: "for so many items at once: 1 to 64" });
        }
        let step = StepDefinition::of::<T>(Some(list), earlier.iter().map(|needed| needed.step).collect());
        let shape = StepShape { each: Some(at_once), ..step.shape::<T>() };
        self.add_shaped(step.for_each::<T>(), shape, earlier);
        // Whatever is done for each of a list is under way beside others, as far as the engine goes.
        self.width = self.width.max(at_once).max(2);
    }

    /// Adds a saga as a step.
    pub(super) fn add_child<T: SubSaga>(
        &mut self,
        child: &Arc<Definition<S>>,
        input: Option<Mapping>,
        earlier: &[NeededOutput],
    ) {
        let name = <T as SubSaga>::NAME;
        if let Err(error) = check_step_name(name) {
            let problem = error.to_string().replacen("the step name", "its name", 1);
            self.problems.push(SagaProblem::SubSaga { step: name, problem });
        }
        let step = StepDefinition::child::<T>(input, earlier.iter().map(|needed| needed.step).collect(), child);
        let undo = if step.undo.is_some() { UndoShape::TakesUnknown } else { UndoShape::Missing };
        let shape = StepShape { child: Some(child.id.name.to_string()), ..StepShape::new(name, Effect::Own, undo) };
        self.add_shaped(step, shape, earlier);
    }

    /// Adds a step that only waits.
    pub(super) fn add_idle(&mut self, step: StepDefinition<S>, earlier: &[NeededOutput]) {
        let (name, effect) = (step.name, step.run.effect());
        self.check_idle_name(name);
        let shape = StepShape::new(name, effect, UndoShape::NotNeeded);
        self.add_shaped(step, shape, earlier);
    }

    pub(super) fn check_idle_name(&mut self, name: &'static str) {
        self.problems.extend(check_step_name(name).err().map(|error| SagaProblem::Name(error.to_string())));
    }

    /// Adds a step behind those that were added last, which reads what those earlier ones gave.
    pub(super) fn add_shaped(&mut self, step: StepDefinition<S>, shape: StepShape, earlier: &[NeededOutput]) {
        let (index, name) = (self.steps.len(), step.name);
        self.push(step, shape);
        for &needed in earlier {
            self.check_needed(name, needed, index);
        }
    }

    /// Adds a step behind those that were added last.
    pub(super) fn push(&mut self, step: StepDefinition<S>, shape: StepShape) {
        let index = self.steps.len();
        let tips = std::mem::replace(&mut self.tips, vec![index]);
        let just_before: Vec<usize> = index.checked_sub(1).into_iter().collect();
        // A shape says only what is not plain, so that a saga without groups has the shape that it always had.
        let after = (tips != just_before).then_some(tips);
        self.shapes.push(StepShape { after, within: self.within, ..shape });
        self.steps.push(step);
    }

    pub(super) fn mark_pivot(&mut self) {
        let problem = match (self.steps.len().checked_sub(1), self.pivot) {
            _ if self.within.is_some() => {
                "`.pivot()` stands inside an arm of a choice; the pivot always runs, so put it in front of the choice or behind it"
            }
            _ if self.depth > 0 => {
                "`.pivot()` stands inside a parallel group; the pivot runs alone, so put it in front of the group or behind it"
            }
            (None, _) => "`.pivot()` stands before the first step; put it behind one",
            (Some(_), Some(_)) => "`.pivot()` stands behind two steps; a saga has one pivot",
            (Some(last), None) if self.shapes[last].within.is_some() || self.shapes[last].is_choice() => {
                "`.pivot()` stands behind a choice; the pivot is one step, so put a step between them"
            }
            (Some(_), None) if self.tips.len() > 1 => {
                "`.pivot()` stands behind a parallel group; the pivot is one step, so put a step between them"
            }
            (Some(last), None) if self.shapes[last].each.is_some() => {
                "`.pivot()` stands behind a step that is done for each item of a list; the pivot is one step, so put a step between them"
            }
            (Some(last), None)
                if self.shapes[last].child.is_none()
                    && matches!(self.shapes[last].effect, Effect::Own | Effect::Signal) =>
            {
                "`.pivot()` stands behind a step that only waits; the pivot is a step that does something, so put it behind one"
            }
            (last, None) => {
                self.pivot = last;
                return;
            }
        };
        self.problems.push(SagaProblem::Pivot(problem));
    }

    /// Checks what the result of the saga reads, when every step is added.
    pub(super) fn check_result(&mut self, name: &'static str, reads: &[NeededOutput]) {
        for &needed in reads {
            self.check_needed(name, needed, self.steps.len());
        }
    }

    /// Whether a step certainly runs before the one of that index, or before the end.
    pub(super) fn check_needed(&mut self, step: &'static str, needed: NeededOutput, index: usize) {
        self.problems.extend(self.problem_with(step, needed, index));
    }

    fn problem_with(&self, step: &'static str, needed: NeededOutput, index: usize) -> Option<SagaProblem> {
        let NeededOutput { step: needed, is_list, is_optional, .. } = needed;
        match self.steps[..index].iter().position(|other| other.name == needed) {
            None => Some(SagaProblem::LateOutput { step, needed }),
            Some(earlier) if self.are_in_other_arms(earlier, index) => {
                Some(SagaProblem::OutputOfOtherArm { step, needed })
            }
            Some(earlier) if !is_behind(&self.shapes, index, earlier) => {
                Some(SagaProblem::SiblingOutput { step, needed })
            }
            Some(earlier) => match (self.shapes[earlier].each, is_list) {
                (Some(_), false) => Some(SagaProblem::OutputOfEach { step, needed }),
                (None, true) => Some(SagaProblem::OutputOfOne { step, needed }),
                _ => match (self.may_be_passed_by(earlier, index), is_optional) {
                    (true, false) => Some(SagaProblem::OutputOfArm { step, needed }),
                    (false, true) => Some(SagaProblem::OutputOfSure { step, needed }),
                    _ => None,
                },
            },
        }
    }

    fn arms_around(&self, step: usize) -> Vec<ArmOf> {
        // The end stands in no arm.
        let within = self.shapes.get(step).and_then(|step| step.within);
        std::iter::successors(within, |arm| self.shapes[arm.choice].within).collect()
    }

    /// Whether never both of them run.
    fn are_in_other_arms(&self, one: usize, other: usize) -> bool {
        let around = self.arms_around(other);
        let is_other = |arm: &ArmOf| around.iter().any(|other| other.choice == arm.choice && other.arm != arm.arm);
        self.arms_around(one).iter().any(is_other)
    }

    /// Whether the later step may run where the earlier one does not, since that stands in an arm.
    fn may_be_passed_by(&self, earlier: usize, later: usize) -> bool {
        let around = self.arms_around(later);
        self.arms_around(earlier).iter().any(|arm| !around.contains(arm))
    }

    pub(super) fn check_order(&mut self) {
        let mut problems = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            if self.steps[..index].iter().any(|other| other.name == step.name) {
                problems.push(SagaProblem::DuplicateStep { step: step.name });
            }
            if step.lacks_lock() {
                problems.push(SagaProblem::NoLock { step: step.name });
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
            && self
                .shapes
                .last()
                .is_some_and(|step| step.undo == UndoShape::Missing && step.each.is_none() && step.within.is_none())
        {
            self.pivot = Some(last);
        }
        let before_pivot = self.pivot.unwrap_or(self.shapes.len());
        for step in self.shapes[..before_pivot].iter().filter(|step| step.undo == UndoShape::Missing) {
            self.problems.push(match &step.child {
                None => SagaProblem::NoCompensation { step: step.name },
                Some(child) => SagaProblem::SubSaga {
                    step: step.name,
                    problem: format!(
                        "it may have to be undone, but `{child}` only goes forward from its pivot on; give the last step of \
                         that saga a compensation, or put `.pivot()` behind this one"
                    ),
                },
            });
        }
    }
}

/// Whether a step only begins when the earlier one is done. The end comes after all of them.
pub(super) fn is_behind(shapes: &[StepShape], later: usize, earlier: usize) -> bool {
    if later >= shapes.len() {
        return true;
    }
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
