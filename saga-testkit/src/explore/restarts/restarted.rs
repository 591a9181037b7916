use std::collections::{BTreeMap, BTreeSet};

use saga_core::store::{RecordedOutcome, StepRecord};

use super::super::ended::Ended;

/// A saga that was started instead of another one, when both have ended: what the two of them left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restarted {
    pub(super) from: &'static str,
    pub(super) is_forced: bool,
    pub(super) ended: Ended,
    pub(super) left: Left,
}

/// What is recorded of two sagas, added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// The steps that have an effect which stays unless it is undone.
    effects: Vec<&'static str>,
    in_arms: Vec<&'static str>,
    /// How often each stands.
    standing: BTreeMap<String, u64>,
    doubtful: BTreeSet<String>,
}

impl Restarted {
    /// The step that the new saga began with. What the old one did before that step was taken over.
    pub fn from(&self) -> &str {
        self.from
    }

    /// Whether the old saga was stuck, and a person ended it as compensated with what it had done as it was. Otherwise it
    /// had undone all of it.
    pub fn is_forced(&self) -> bool {
        self.is_forced
    }

    /// How the new saga ended.
    pub fn ended(&self) -> &Ended {
        &self.ended
    }

    /// How many times what a step does stands now: it was done, by the old saga or the new one, and not undone by it. What
    /// was taken over counts once. Of a step that is done for each item of a list the items have names, `step#1` and on.
    pub fn standing(&self, step: &str) -> u64 {
        self.left.standing.get(step).copied().unwrap_or(0)
    }

    /// Whether it is unknown if what the old saga did at a step stands: a call of it, or of its undo, was still without a
    /// definite answer when a person ended the saga. It is not counted in [`standing`](Self::standing).
    pub fn is_doubtful(&self, step: &str) -> bool {
        self.left.doubtful.contains(step)
    }

    /// How one saga alone would have ended that leaves the same: completed where each effect stands once, compensated where
    /// none does. Nothing where the two left what none leaves alone, as when the new one began in front of what the old one had
    /// left standing, or where something is doubtful. A step that needs no compensation counts for neither.
    pub fn amounts_to(&self) -> Option<Ended> {
        let left = &self.left;
        let effects = left.effects();
        if effects.iter().any(|(id, _)| self.is_doubtful(id)) {
            return None;
        }
        let counts: BTreeSet<u64> = effects.into_iter().map(|(_, count)| count).collect();
        let mut counts = counts.into_iter();
        match (counts.next(), counts.next()) {
            (Some(0) | None, None) => Some(Ended::Compensated),
            (Some(1), None) => Some(Ended::Completed),
            _ => None,
        }
    }
}

impl Left {
    /// Nothing yet, of a saga with these effects. Those in arms are there where their arm was taken.
    pub(super) fn new(effects: Vec<&'static str>, in_arms: Vec<&'static str>) -> Self {
        Self { effects, in_arms, ..Self::default() }
    }

    /// A step without which a saga cannot have completed, and which does not stand.
    pub(super) fn missing(&self) -> Option<&str> {
        let is_missing = |(id, count): &(&str, u64)| *count == 0 && !self.doubtful.contains(*id);
        self.effects().into_iter().find(is_missing).map(|(id, _)| id)
    }

    /// Each effect that a saga has, one for each item of a list, and how often it stands.
    fn effects(&self) -> Vec<(&str, u64)> {
        let mut effects = Vec::new();
        for effect in &self.effects {
            let items = self.standing.range(format!("{effect}#")..).take_while(|(id, _)| is_item_of(id, effect));
            let before = effects.len();
            effects.extend(items.map(|(id, count)| (id.as_str(), *count)));
            match self.standing.get(*effect) {
                _ if effects.len() > before => {}
                None if self.in_arms.contains(effect) => {}
                count => effects.push((*effect, count.copied().unwrap_or(0))),
            }
        }
        effects
    }

    /// Adds what the records of a saga say. `is_definite` says of a step, or with `true` of its undo, whether what a person
    /// went past certainly did nothing.
    pub(super) fn add(&mut self, records: &[StepRecord], is_definite: impl Fn(&str, bool) -> bool) {
        for record in records.iter().filter(|record| record.step.undo_round().is_none()) {
            let (id, step) = (record.step.step_and_item(), record.step.step());
            let is_list = record.step.item() == Some(0);
            let is_join = record.step.item().is_none() && records.iter().any(|other| is_list_of(other, step));
            if is_list || is_join {
                continue;
            }
            let undos = records.iter().filter(|other| other.step.undo_round().is_some());
            let undos: Vec<RecordedOutcome> =
                undos.filter(|undo| undo.step.step_and_item() == id).map(|undo| undo.outcome).collect();
            let stands = self.standing.entry(id.to_owned()).or_default();
            let is_doubtful = match record.outcome {
                _ if undos.contains(&RecordedOutcome::Done) => false,
                RecordedOutcome::Done if undos.is_empty() || is_definite(step, true) => {
                    *stands += 1;
                    false
                }
                RecordedOutcome::Done | RecordedOutcome::Unknown => true,
                RecordedOutcome::Skipped => !is_definite(step, false),
                RecordedOutcome::Rejected | RecordedOutcome::Failed | RecordedOutcome::Cancelled => false,
            };
            if is_doubtful {
                self.doubtful.insert(id.to_owned());
            }
        }
    }
}

fn is_list_of(record: &StepRecord, step: &str) -> bool {
    record.step.item() == Some(0) && record.step.step() == step
}

fn is_item_of(id: &str, step: &str) -> bool {
    id.strip_prefix(step).is_some_and(|rest| rest.starts_with('#'))
}
