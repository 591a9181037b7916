//! The items of a step that is done for each of a list: which they are, and how their states are stored.
//!
//! The state of a saga is written each time one of its steps is recorded. A thousand items are a thousand times two or
//! three bytes there: equal phases in a row are counted, and of positions the difference to the one before is kept.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::remote::Sent;
use super::state::{SagaState, StepPhase, StepState};

/// The most items that a stored state is believed to have.
pub(crate) const ITEMS_MAX: usize = 100_000;

const LETTERS: [(StepPhase, char); 11] = [
    (StepPhase::Ready, '-'),
    (StepPhase::Started, 's'),
    (StepPhase::Done, 'd'),
    (StepPhase::Rejected, 'r'),
    (StepPhase::Failed, 'f'),
    (StepPhase::Unknown, '?'),
    (StepPhase::Undoing, 'u'),
    (StepPhase::Undone, 'U'),
    (StepPhase::Cancelled, 'c'),
    (StepPhase::Skipped, 'k'),
    (StepPhase::UndoSkipped, 'K'),
];

/// The items of one step. They are steps of the saga's state, in the order of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Items {
    /// The step that is done for each of them.
    #[serde(rename = "s")]
    pub step: usize,
    /// Where the first of them stands among the steps of the state.
    #[serde(skip)]
    pub first: usize,
    /// How many they are.
    #[serde(rename = "n")]
    pub count: usize,
    /// Where another service is asked for them: the id of the message that asks for the first. Those of the others follow
    /// it, so that the state need not keep a thousand of them.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    asked: Option<u128>,
    /// Their phases, equal ones in a row with how many they are.
    #[serde(rename = "p", default, skip_serializing_if = "String::is_empty")]
    phases: String,
    /// The positions of those that have one, each less the one before.
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    positions: Vec<i64>,
    /// Those that need more to be said of them.
    #[serde(rename = "x", default, skip_serializing_if = "Vec::is_empty")]
    further: Vec<(usize, StepState)>,
}

impl Items {
    /// Where they stand among the steps of the state.
    pub fn range(&self) -> Range<usize> {
        self.first..self.first + self.count
    }

    fn pack(&mut self, steps: &[StepState]) {
        let mut run: Option<(StepPhase, usize)> = None;
        let mut before = 0;
        for (number, step) in steps.iter().enumerate() {
            run = match run {
                Some((phase, count)) if phase == step.phase => Some((phase, count + 1)),
                other => {
                    self.push_run(other);
                    Some((step.phase, 1))
                }
            };
            if *step == self.plain(number, step.phase, step.position) {
                if has_position(step.phase) {
                    let position = i64::from(step.position);
                    self.positions.push(position - before);
                    before = position;
                }
            } else {
                self.further.push((number, *step));
            }
        }
        self.push_run(run);
    }

    fn push_run(&mut self, run: Option<(StepPhase, usize)>) {
        let Some((phase, count)) = run else { return };
        self.phases.extend(LETTERS.iter().find(|(known, _)| *known == phase).map(|(_, letter)| *letter));
        if count > 1 {
            self.phases.push_str(&count.to_string());
        }
    }

    fn unpack(&mut self) -> Result<Vec<StepState>, String> {
        let phases = self.read_phases()?;
        let plain = |(number, phase)| self.plain(number, phase, 0);
        let mut steps: Vec<StepState> = phases.into_iter().enumerate().map(plain).collect();
        let further = std::mem::take(&mut self.further);
        let mut is_plain = vec![true; steps.len()];
        for (number, state) in further {
            *steps.get_mut(number).ok_or("it tells of an item that is not there")? = state;
            is_plain[number] = false;
        }
        let mut positions = std::mem::take(&mut self.positions).into_iter();
        let mut position = 0_i64;
        for step in steps.iter_mut().zip(is_plain).filter_map(|(step, is_plain)| is_plain.then_some(step)) {
            if has_position(step.phase) {
                let further = positions.next().ok_or("an item of it has no position")?;
                position = position.checked_add(further).ok_or("a position of it is none")?;
                step.position = u32::try_from(position).map_err(|_| "a position of it is none")?;
            }
        }
        self.phases.clear();
        Ok(steps)
    }

    /// What there is to say of nearly every item of that phase.
    fn plain(&self, number: usize, phase: StepPhase, position: u32) -> StepState {
        let is_begun = matches!(phase, StepPhase::Undoing | StepPhase::Undone | StepPhase::UndoSkipped);
        let position = if has_position(phase) { position } else { 0 };
        let message = self.message_of(number).filter(|_| phase != StepPhase::Ready);
        let sent = message.map(|message| Sent { message, work: 0, given: 0 });
        StepState { phase, position, undo_round: u32::from(is_begun), sent, ..StepState::new() }
    }

    fn message_of(&self, number: usize) -> Option<u128> {
        Some(self.asked?.wrapping_add(number as u128))
    }

    fn read_phases(&self) -> Result<Vec<StepPhase>, String> {
        if self.count > ITEMS_MAX {
            return Err(format!("it has {} items", self.count));
        }
        let mut phases = Vec::with_capacity(self.count);
        let mut rest = self.phases.as_str();
        while let Some(letter) = rest.chars().next() {
            let known = LETTERS.iter().find(|(_, known)| *known == letter);
            let (phase, _) = known.ok_or_else(|| format!("no phase is {letter:?}"))?;
            rest = &rest[letter.len_utf8()..];
            let digits = rest.find(|next: char| !next.is_ascii_digit()).unwrap_or(rest.len());
            let count = if digits == 0 { 1 } else { rest[..digits].parse::<usize>().unwrap_or(usize::MAX) };
            rest = &rest[digits..];
            if count > self.count - phases.len() {
                break;
            }
            phases.resize(phases.len() + count, *phase);
        }
        if phases.len() == self.count && rest.is_empty() {
            Ok(phases)
        } else {
            Err("its items are others than it counts".to_owned())
        }
    }
}

fn has_position(phase: StepPhase) -> bool {
    !matches!(phase, StepPhase::Ready | StepPhase::Started)
}

impl SagaState {
    /// The step of the definition that this is, or an item of.
    pub fn base(&self, step: usize) -> usize {
        self.items.iter().find(|items| items.range().contains(&step)).map_or(step, |items| items.step)
    }

    /// Which item of a list this step is, counted from 1.
    pub fn item_number(&self, step: usize) -> Option<u32> {
        let items = self.items.iter().find(|items| items.range().contains(&step))?;
        u32::try_from(step - items.first + 1).ok()
    }

    /// Where the items of that step stand, once its list is there.
    pub fn items_of(&self, step: usize) -> Option<Range<usize>> {
        self.items.iter().find(|items| items.step == step).map(Items::range)
    }

    /// Where that step of the definition stands, or the item of that number.
    pub fn index_of(&self, step: usize, item: Option<u32>) -> Option<usize> {
        let Some(number) = item else { return Some(step) };
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.items_of(step)?.nth(index)
    }

    /// The service that has the step, or the item, is asked for it by a message of the id `fresh`, or by the one that asked
    /// for it before: one step key is asked for by one message, also when a person has it tried again. The row `work` waits
    /// for the reply, and `given` is the checksum of what a mapping gave the step.
    pub(crate) fn note_sent(&mut self, step: usize, fresh: u128, work: i64, given: u64) {
        let known = self.steps[step].sent.map(|sent| sent.message);
        let items = self.items.iter_mut().find(|items| items.range().contains(&step));
        let of_item = items.and_then(|items| {
            let number = step - items.first;
            items.asked.get_or_insert(fresh.wrapping_sub(number as u128));
            items.message_of(number)
        });
        self.steps[step].sent = Some(Sent { message: known.or(of_item).unwrap_or(fresh), work, given });
    }

    /// The state, of which only the numbers of items stay behind: by them what is left can still be named.
    pub(crate) fn take(&mut self) -> Self {
        let left = Self { items: self.items.clone(), ..Self::new(0) };
        std::mem::replace(self, left)
    }

    pub(super) fn unfold(&mut self, step: usize, count: usize) {
        let first = self.steps.len();
        self.items.push(Items { step, first, count, ..Items::default() });
        self.steps.resize(first + count, StepState::new());
    }

    /// The state as it is stored.
    pub(super) fn packed(&self) -> Self {
        let defined = self.items.first().map_or(self.steps.len(), |items| items.first);
        let mut items = self.items.clone();
        for items in &mut items {
            items.pack(&self.steps[items.range()]);
        }
        Self {
            phase: self.phase,
            steps: self.steps[..defined].to_vec(),
            items,
            position: self.position,
            messages: self.messages,
            failure: self.failure.clone(),
            reports: self.reports.clone(),
            stuck: self.stuck.clone(),
            also_stuck: self.also_stuck.clone(),
            caller: self.caller.clone(),
            deadline: self.deadline,
            within: self.within,
            forced: self.forced.clone(),
            paused: self.paused.clone(),
        }
    }

    pub(super) fn unpack(&mut self) -> Result<(), String> {
        let defined = self.steps.len();
        for number in 0..self.items.len() {
            let step = self.items[number].step;
            let is_twice = self.items[..number].iter().any(|items| items.step == step);
            if is_twice || step >= defined {
                return Err("it has items of a step that has none".to_owned());
            }
            self.items[number].first = self.steps.len();
            let steps = self.items[number].unpack()?;
            self.steps.extend(steps);
        }
        Ok(())
    }
}
