//! The items of a step that runs once per item of a list, and how their states are stored.
//!
//! The state of a saga is written each time one of its steps is recorded. An item takes two or three bytes of it: equal
//! phases in a row are counted, and a position is stored as its difference to the position before it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::remote::Sent;
use super::step_state::{StepPhase, StepState};

/// The most items of one list that a stored state may have.
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
    /// The step that runs for each of them.
    #[serde(rename = "s")]
    pub step: usize,
    /// The index of the first among the steps of the state.
    #[serde(skip)]
    pub first: usize,
    /// How many there are.
    #[serde(rename = "n")]
    pub count: usize,
    /// Of a remote step: the id of the message that asks for the first item. The ids of the other messages follow it, so
    /// that the state need not keep a thousand of them.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    asked: Option<u128>,
    /// Their phases: equal phases in a row are one letter and their number.
    #[serde(rename = "p", default, skip_serializing_if = "String::is_empty")]
    phases: String,
    /// The positions of the items that have one, each as the difference to the one before.
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    positions: Vec<i64>,
    /// The items whose states are more than a phase and a position, by their numbers.
    #[serde(rename = "x", default, skip_serializing_if = "Vec::is_empty")]
    further: Vec<(usize, StepState)>,
}

impl Items {
    pub(in crate::machine) fn new(step: usize, first: usize, count: usize) -> Self {
        Self { step, first, count, ..Self::default() }
    }

    /// Their indices among the steps of the state.
    pub fn range(&self) -> Range<usize> {
        self.first..self.first + self.count
    }

    pub(in crate::machine) fn pack(&mut self, steps: &[StepState]) {
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

    pub(in crate::machine) fn unpack(&mut self) -> Result<Vec<StepState>, String> {
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

    /// The state that nearly every item of that phase has.
    fn plain(&self, number: usize, phase: StepPhase, position: u32) -> StepState {
        let is_begun = matches!(phase, StepPhase::Undoing | StepPhase::Undone | StepPhase::UndoSkipped);
        let position = if has_position(phase) { position } else { 0 };
        let message = self.message_of(number).filter(|_| phase != StepPhase::Ready);
        let sent = message.map(Sent::without_row);
        StepState { phase, position, undo_round: u32::from(is_begun), sent, ..StepState::new() }
    }

    /// The id of the message that asks for the item at that index of the state; `fresh` where none was asked for so far.
    pub(in crate::machine) fn message_of_step(&mut self, step: usize, fresh: u128) -> u128 {
        let number = (step - self.first) as u128;
        self.asked.get_or_insert(fresh.wrapping_sub(number)).wrapping_add(number)
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
