//! What was said of the steps and choices of two versions, held against both.

use std::sync::Arc;

use super::Definition;
use super::definition::arm::LAST_ARM;
use crate::machine::StepShape;
use crate::store::Store;

/// Makes the output of a new step of the stored one of an old step.
pub(crate) type Conversion = Arc<dyn Fn(&[u8]) -> Result<Vec<u8>, String> + Send + Sync>;

/// Something that was said of a step or of a choice.
pub(super) enum Said {
    Became { old: &'static str, new: &'static str, conversion: Option<Conversion> },
    LeftOut { old: &'static str },
    Passed { new: &'static str },
    LeftOutSleep { sleep: &'static str },
    PassedSleep { sleep: &'static str },
    BecameChoice { old: &'static str, new: &'static str },
    BecameArm { choice: &'static str, old: &'static str, new: &'static str },
    LeftOutChoice { choice: &'static str },
    PassedChoice { choice: &'static str, arm: Option<&'static str> },
}

/// What a name is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Step,
    Sleep,
    Choice,
}

impl Kind {
    fn of(step: &StepShape) -> Self {
        if step.is_choice() {
            Self::Choice
        } else if step.is_sleep() {
            Self::Sleep
        } else {
            Self::Step
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Sleep => "sleep",
            Self::Choice => "choice",
        }
    }
}

/// What was said, beside the two versions.
pub(super) struct SaidOf<'a, S: Store> {
    pub(super) from: &'a Definition<S>,
    pub(super) to: &'a Definition<S>,
    pub(super) problems: Vec<String>,
}

impl<S: Store> SaidOf<'_, S> {
    pub(super) fn check_versions(&mut self) {
        let (from, to) = (&self.from.id, &self.to.id);
        if from.name != to.name {
            self.problems.push("they are two sagas, and a saga only moves between versions of one".to_owned());
        } else if from == to {
            self.problems.push("they are one version; give the new one another with `.version(..)`".to_owned());
        }
    }

    pub(super) fn places(&mut self, said: &[Said]) -> Vec<Option<usize>> {
        let mut places: Vec<Option<usize>> =
            self.from.shape.steps.iter().map(|step| self.to.shape.position(step.name)).collect();
        let mut is_settled: Vec<bool> = places.iter().map(Option::is_some).collect();
        for said in said {
            let (kind, old, new) = match *said {
                Said::Became { old, new, .. } => (Kind::Step, old, Some(new)),
                Said::LeftOut { old } => (Kind::Step, old, None),
                Said::BecameChoice { old, new } => (Kind::Choice, old, Some(new)),
                Said::LeftOutChoice { choice } => (Kind::Choice, choice, None),
                Said::LeftOutSleep { sleep } => (Kind::Sleep, sleep, None),
                _ => continue,
            };
            let Some(index) = self.find(self.from, kind, old) else { continue };
            let place = new.and_then(|new| self.find(self.to, kind, new));
            if new.is_none() && self.to.shape.position(old).is_some() {
                // What is recorded of it would stand in the way of the new one.
                self.problems.push(format!("`{old}` is in both versions, so it is not left out"));
            }
            if let Some(new) = new.filter(|new| *new != old && self.from.shape.position(new).is_some()) {
                self.problems.push(format!("`{old}` cannot become `{new}`, which is another step of {}", self.from.id));
            }
            (places[index], is_settled[index]) = (place, true);
        }
        for (step, _) in self.from.shape.steps.iter().zip(is_settled).filter(|(_, is_settled)| !is_settled) {
            let (to, name) = (&self.to.id, step.name);
            self.problems.push(match Kind::of(step) {
                Kind::Choice => format!(
                    "{to} has no choice `{name}`; say which one it became with `.choice(\"{name}\", \"..\")`, or leave it out \
                     with `.remove_choice(\"{name}\")`"
                ),
                Kind::Sleep => {
                    format!("{to} has no sleep `{name}`; leave it out with `.remove_sleep(\"{name}\")`")
                }
                Kind::Step => format!(
                    "{to} has no step `{name}`; say which one it became with `.step::<{}, ..>()`, or leave it out with \
                     `.remove`",
                    name.replace('-', "_")
                ),
            });
        }
        let pairs = self.from.shape.steps.iter().zip(&places);
        for (old, new) in pairs.filter_map(|(old, place)| Some((old, &self.to.shape.steps[(*place)?]))) {
            if Kind::of(old) != Kind::of(new) {
                let (name, was, is) = (old.name, Kind::of(old).name(), Kind::of(new).name());
                self.problems.push(format!(
                    "`{name}` is a {was} in one version and a {is} in the other; call the new one by another name"
                ));
            }
        }
        let mut taken: Vec<usize> = places.iter().flatten().copied().collect();
        taken.sort_unstable();
        for pair in taken.windows(2).filter(|pair| pair[0] == pair[1]) {
            self.problems.push(format!("two steps became `{}`", self.to.shape.steps[pair[0]].name));
        }
        places
    }

    pub(super) fn passed(&mut self, said: &[Said], places: &[Option<usize>]) -> Vec<usize> {
        let mut passed = Vec::new();
        for said in said {
            let (kind, new) = match *said {
                Said::Passed { new } => (Kind::Step, new),
                Said::PassedSleep { sleep } => (Kind::Sleep, sleep),
                _ => continue,
            };
            match self.find(self.to, kind, new) {
                // One that stands in an arm is passed by where another arm was taken, and is new to such a saga.
                Some(place) if self.old_step(places, place).is_some_and(|old| old.within.is_none()) => {
                    self.problems.push(format!("`{new}` is in both versions, so it is not gone past"));
                }
                Some(place) => passed.push(place),
                None => {}
            }
        }
        passed
    }

    /// The step that this one of the new version was.
    fn old_step(&self, places: &[Option<usize>], place: usize) -> Option<&StepShape> {
        let old = places.iter().position(|old| *old == Some(place))?;
        Some(&self.from.shape.steps[old])
    }

    /// The places of the arms of each old choice in the choice that it became.
    pub(super) fn arms(&mut self, said: &[Said], places: &[Option<usize>]) -> Vec<Vec<Option<usize>>> {
        let (from, to) = (&self.from.shape, &self.to.shape);
        let new_arms = |choice: usize| places[choice].map_or(&[][..], |place| &to.steps[place].arms);
        let place_of = |choice: usize, name: &str| new_arms(choice).iter().position(|arm| *arm == name);
        let mut arms: Vec<Vec<Option<usize>>> = (0..from.steps.len())
            .map(|choice| from.steps[choice].arms.iter().map(|arm| place_of(choice, arm)).collect())
            .collect();
        for said in said {
            let Said::BecameArm { choice, old, new } = *said else { continue };
            let Some(index) = self.find(self.from, Kind::Choice, choice) else { continue };
            let Some(arm) = self.find_arm(self.from, index, old) else { continue };
            let Some(place) = places[index] else {
                self.problems.push(format!("`{choice}` is left out, so its arm `{old}` becomes none"));
                continue;
            };
            arms[index][arm] = self.find_arm(self.to, place, new);
        }
        for (choice, arms) in arms.iter().enumerate() {
            let mut taken: Vec<usize> = arms.iter().flatten().copied().collect();
            taken.sort_unstable();
            if let Some(pair) = taken.windows(2).find(|pair| pair[0] == pair[1]) {
                let (choice, arm) = (from.steps[choice].name, new_arms(choice)[pair[0]]);
                self.problems.push(format!("two arms of `{choice}` became `{arm}`"));
            }
        }
        arms
    }

    /// The choices that a saga may be past, each with the arm that counts as taken.
    pub(super) fn chosen(&mut self, said: &[Said]) -> Vec<(usize, Option<usize>)> {
        let mut chosen: Vec<(usize, Option<usize>)> = Vec::new();
        for said in said {
            let Said::PassedChoice { choice, arm } = *said else { continue };
            let Some(place) = self.find(self.to, Kind::Choice, choice) else { continue };
            if chosen.iter().any(|(known, _)| *known == place) {
                self.problems.push(format!("which arm of `{choice}` counts as taken is said twice"));
            }
            match arm {
                None if self.to.shape.steps[place].arms.last() == Some(&LAST_ARM) => {
                    self.problems.push(format!(
                        "one arm of `{choice}` always runs; say which, with `.assume_arm(\"{choice}\", \"{LAST_ARM}\")`"
                    ));
                }
                None => chosen.push((place, None)),
                Some(arm) => chosen.extend(self.find_arm(self.to, place, arm).map(|arm| (place, Some(arm)))),
            }
        }
        chosen
    }

    fn find(&mut self, version: &Definition<S>, kind: Kind, name: &str) -> Option<usize> {
        let is_it = |step: &StepShape| step.name == name && Kind::of(step) == kind;
        let place = version.shape.steps.iter().position(is_it);
        if place.is_none() {
            self.problems.push(format!("{} has no {} `{name}`", version.id, kind.name()));
        }
        place
    }

    fn find_arm(&mut self, version: &Definition<S>, choice: usize, name: &str) -> Option<usize> {
        let of = &version.shape.steps[choice];
        let arm = of.arms.iter().position(|arm| *arm == name);
        if arm.is_none() {
            let known = of.arms.iter().map(|arm| format!("`{arm}`")).collect::<Vec<_>>().join(", ");
            self.problems.push(format!("`{}` of {} has no arm `{name}`; it has {known}", of.name, version.id));
        }
        arm
    }

    pub(super) fn conversions(&mut self, said: &[Said]) -> Vec<(usize, Conversion)> {
        let mut conversions = Vec::new();
        for said in said {
            let Said::Became { old, conversion: Some(conversion), .. } = said else { continue };
            let Some(index) = self.from.shape.position(old) else { continue };
            if self.from.shape.each(index).is_some() {
                self.problems
                    .push(format!("`{old}` is done for each item of a list, so what it returned stays as it is"));
            }
            conversions.push((index, Arc::clone(conversion)));
        }
        conversions
    }
}
