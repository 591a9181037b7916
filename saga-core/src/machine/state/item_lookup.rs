//! Finds the steps of a state that are items of a list, and their list.

use std::ops::Range;

use super::items::Items;
use super::remote::Sent;
use super::state::SagaState;
use super::step_state::StepState;

impl SagaState {
    /// The step of the definition that this is, or that it is an item of.
    pub fn base(&self, step: usize) -> usize {
        self.items.iter().find(|items| items.range().contains(&step)).map_or(step, |items| items.step)
    }

    /// Which item of a list this step is, counted from 1.
    pub fn item_number(&self, step: usize) -> Option<u32> {
        let items = self.items.iter().find(|items| items.range().contains(&step))?;
        u32::try_from(step - items.first + 1).ok()
    }

    /// The indices of that step's items, once its list is known.
    pub fn items_of(&self, step: usize) -> Option<Range<usize>> {
        self.items.iter().find(|items| items.step == step).map(Items::range)
    }

    /// The index of that step of the definition, or of its item of that number.
    pub fn index_of(&self, step: usize, item: Option<u32>) -> Option<usize> {
        let Some(number) = item else { return Some(step) };
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.items_of(step)?.nth(index)
    }

    /// The service that has the step, or the item, is asked for it by a message of the id `fresh`, or by the message that
    /// asked for it before: one step key is asked for by one message, also when an operator retries it. The row `work` waits
    /// for the reply, and `given` is the checksum of what a mapping gave the step.
    pub(crate) fn note_sent(&mut self, step: usize, fresh: u128, work: i64, given: u64) {
        let known = self.steps[step].sent.map(|sent| sent.message);
        let items = self.items.iter_mut().find(|items| items.range().contains(&step));
        let of_item = items.map(|items| items.message_of_step(step, fresh));
        self.steps[step].sent = Some(Sent { message: known.or(of_item).unwrap_or(fresh), work, given });
    }

    /// Takes the state out. Only the numbers of items stay behind: they are enough to name the steps.
    pub(crate) fn take(&mut self) -> Self {
        let left = Self { items: self.items.clone(), ..Self::new(0) };
        std::mem::replace(self, left)
    }

    pub(in crate::machine) fn add_items(&mut self, step: usize, count: usize) {
        let first = self.steps.len();
        self.items.push(Items::new(step, first, count));
        self.steps.resize(first + count, StepState::new());
    }
}
