//! Which handlers a step transaction calls, and for which of its commands.

use std::collections::VecDeque;

use super::entry::BatchEntry;
use crate::engine::instance::WorkItem;
use crate::store::Store;

/// The members of a transaction whose handler is called at once: one, or those of a batch step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HandlerCall {
    One(usize),
    Many(Vec<usize>),
}

/// The calls that a transaction still has to make.
#[derive(Debug, Default)]
pub(crate) struct BatchOrder {
    /// Whose handler was called by now, by itself or with another's; those that were not granted count as such.
    begun: Vec<bool>,
    /// How many of these were not.
    fresh: usize,
    /// The calls that come next: what is made again, together or in parts.
    next: VecDeque<HandlerCall>,
    /// Whose sagas ran on. They wait until every command had its first call: all that come as far share the call of a batch
    /// step, and one savepoint of an ordinary one.
    later: Vec<usize>,
    /// Of the latest call.
    latest: HandlerCall,
}

impl HandlerCall {
    pub(crate) fn members(&self) -> &[usize] {
        match self {
            Self::One(index) => std::slice::from_ref(index),
            Self::Many(indexes) => indexes,
        }
    }

    /// Its parts, where it is made again in halves.
    pub(crate) fn halves(&self) -> [Self; 2] {
        let (first, second) = self.members().split_at(self.members().len() / 2);
        [first, second].map(|half| Self::Many(half.to_vec()))
    }
}

impl Default for HandlerCall {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl BatchOrder {
    /// The plan for commands that were granted, or were not.
    pub(crate) fn of_granted(granted: &[bool]) -> Self {
        let fresh = granted.iter().filter(|granted| **granted).count();
        Self { begun: granted.iter().map(|granted| !granted).collect(), fresh, ..Self::default() }
    }

    /// Whether the handler of that command was called by now.
    pub(crate) fn has_begun(&self, index: usize) -> bool {
        self.begun.get(index).copied().unwrap_or_default()
    }

    /// Whether another call follows before the next command has its turn.
    pub(crate) fn has_more(&self) -> bool {
        !self.next.is_empty() || (!self.later.is_empty() && self.fresh == 0)
    }

    /// One of the members of the call that comes next, when that command has its turn.
    pub(crate) fn is_next<S: Store>(&self, members: &[BatchEntry<S>], index: usize) -> usize {
        let next = match self.next.front() {
            Some(call) => call.members().first().copied(),
            None if self.has_begun(index) => self.first_later(members),
            None => None,
        };
        next.unwrap_or(index)
    }

    /// One of the members of the next batch call, if one is next.
    pub(crate) fn follows<S: Store>(&self, members: &[BatchEntry<S>]) -> Option<usize> {
        let turn = if self.fresh > 0 { self.begun.iter().position(|begun| !begun) } else { None };
        match (self.next.front(), turn) {
            (Some(call), _) => call.members().first().copied(),
            (None, Some(turn)) => Some(turn),
            (None, None) => self.first_later(members),
        }
    }

    /// Takes the call that comes next, when that command has its turn.
    pub(crate) fn take_next<S: Store>(&mut self, members: &[BatchEntry<S>], index: usize) -> HandlerCall {
        let call = match self.next.pop_front() {
            Some(call) => call,
            None if self.has_begun(index) => self.take_later(members),
            None => self.begin(members, index),
        };
        self.latest.clone_from(&call);
        call
    }

    /// Calls are made again, or a call in parts, in front of all others.
    pub(crate) fn put_first(&mut self, calls: impl DoubleEndedIterator<Item = HandlerCall>) {
        for call in calls.rev().filter(|call| !call.members().is_empty()) {
            self.next.push_front(call);
        }
    }

    /// The saga of that member ran on to its next step.
    pub(crate) fn ran_on(&mut self, index: usize) {
        self.later.push(index);
    }

    /// The members of the latest call, who are to blame for what went wrong since.
    pub(crate) fn latest(&self) -> &[usize] {
        self.latest.members()
    }

    /// The first call of that command, together with those that a batch step takes along.
    fn begin<S: Store>(&mut self, members: &[BatchEntry<S>], index: usize) -> HandlerCall {
        let call = match command_of(members, index).filter(|command| command.is_batch()) {
            None => HandlerCall::One(index),
            Some(command) => {
                let joins = |other: &usize| !self.has_begun(*other) && is_same_step(members, *other, command);
                HandlerCall::Many((index..members.len()).filter(joins).collect())
            }
        };
        for member in call.members() {
            if let Some(begun) = self.begun.get_mut(*member) {
                *begun = true;
                self.fresh -= 1;
            }
        }
        call
    }

    /// The call of the earliest step, so that its sagas meet those that are further.
    fn take_later<S: Store>(&mut self, members: &[BatchEntry<S>]) -> HandlerCall {
        let Some(first) = self.first_later(members) else { return HandlerCall::default() };
        match command_of(members, first).filter(|command| command.is_batch()) {
            None => {
                self.later.retain(|member| *member != first);
                HandlerCall::One(first)
            }
            Some(command) => {
                let joins = |member: &mut usize| is_same_step(members, *member, command);
                HandlerCall::Many(self.later.extract_if(.., joins).collect())
            }
        }
    }

    fn first_later<S: Store>(&self, members: &[BatchEntry<S>]) -> Option<usize> {
        self.later.iter().copied().min_by_key(|member| command_of(members, *member).map(WorkItem::step_index))
    }
}

fn command_of<S: Store>(members: &[BatchEntry<S>], index: usize) -> Option<&WorkItem<S>> {
    members.get(index).and_then(|member| member.command.as_deref())
}

fn is_same_step<S: Store>(members: &[BatchEntry<S>], index: usize, command: &WorkItem<S>) -> bool {
    command_of(members, index).is_some_and(|other| other.is_batch() && other.is_same_step(command))
}
