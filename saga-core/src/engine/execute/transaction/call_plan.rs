//! Plans the handler calls of a step transaction: which comes next, and for which of its commands.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::entry::BatchEntry;
use crate::engine::instance::WorkItem;
use crate::store::{Entity, Store};

/// One call of a handler: for one member of the transaction, or for the members of a batch step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HandlerCall {
    One(usize),
    Many(Vec<usize>),
}

/// The calls that a transaction still has to make.
#[derive(Debug, Default)]
pub(crate) struct CallPlan {
    /// By member, whether its handler was called. A member that was not granted counts as called.
    begun: Vec<bool>,
    /// How many handlers were not called yet.
    fresh: usize,
    /// The calls that come first: repeated ones, and parts of repeated ones.
    next: VecDeque<HandlerCall>,
    /// Members with a chained step. They wait until every member had its first call, so that those at the same step share the call
    /// of a batch step, or one savepoint.
    later: Vec<usize>,
    /// The latest call.
    latest: HandlerCall,
}

impl HandlerCall {
    pub(crate) fn members(&self) -> &[usize] {
        match self {
            Self::One(index) => std::slice::from_ref(index),
            Self::Many(indexes) => indexes,
        }
    }

    /// The call in two halves.
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

impl CallPlan {
    /// The first plan, for the members that were granted.
    pub(crate) fn of_granted(granted: &[bool]) -> Self {
        let fresh = granted.iter().filter(|granted| **granted).count();
        Self { begun: granted.iter().map(|granted| !granted).collect(), fresh, ..Self::default() }
    }

    /// Whether the handler of the member was called.
    pub(crate) fn has_begun(&self, index: usize) -> bool {
        self.begun.get(index).copied().unwrap_or_default()
    }

    /// Whether another call comes before the next member has its turn.
    pub(crate) fn has_more(&self) -> bool {
        !self.next.is_empty() || (!self.later.is_empty() && self.fresh == 0)
    }

    /// A member of the call that is next when this member has its turn.
    pub(crate) fn next_member<S: Store>(&self, members: &[BatchEntry<S>], index: usize) -> usize {
        let next = match self.next.front() {
            Some(call) => call.members().first().copied(),
            None if self.has_begun(index) => self.first_later(members),
            None => None,
        };
        next.unwrap_or(index)
    }

    /// A member of the next call, if there is one.
    pub(crate) fn following_member<S: Store>(&self, members: &[BatchEntry<S>]) -> Option<usize> {
        let turn = if self.fresh > 0 { self.begun.iter().position(|begun| !begun) } else { None };
        match (self.next.front(), turn) {
            (Some(call), _) => call.members().first().copied(),
            (None, Some(turn)) => Some(turn),
            (None, None) => self.first_later(members),
        }
    }

    /// Takes the call that is next when this member has its turn.
    pub(crate) fn take_next<S: Store>(&mut self, members: &[BatchEntry<S>], index: usize) -> HandlerCall {
        let call = match self.next.pop_front() {
            Some(call) => call,
            None if self.has_begun(index) => self.take_later(members),
            None => self.begin(members, index),
        };
        self.latest.clone_from(&call);
        call
    }

    /// Repeats calls, or parts of a call, before all others.
    pub(crate) fn put_first(&mut self, calls: impl DoubleEndedIterator<Item = HandlerCall>) {
        for call in calls.rev().filter(|call| !call.members().is_empty()) {
            self.next.push_front(call);
        }
    }

    /// The member has a chained step.
    pub(crate) fn add_chained(&mut self, index: usize) {
        self.later.push(index);
    }

    /// The members of the latest call, which are to blame for a failure after it.
    pub(crate) fn latest(&self) -> &[usize] {
        self.latest.members()
    }

    /// The first call of the member, together with the other members of its batch step.
    fn begin<S: Store>(&mut self, members: &[BatchEntry<S>], index: usize) -> HandlerCall {
        let call = match command_of(members, index).filter(|command| command.is_batch()) {
            None => HandlerCall::One(index),
            Some(command) => {
                let mut locked = BTreeSet::new();
                let joins = |other: &usize| {
                    !self.has_begun(*other) && joins(members, *other, command) && adds(members, *other, &mut locked)
                };
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

    /// The call for the earliest step, so that its sagas catch up with the others.
    fn take_later<S: Store>(&mut self, members: &[BatchEntry<S>]) -> HandlerCall {
        let Some(first) = self.first_later(members) else { return HandlerCall::default() };
        match command_of(members, first).filter(|command| command.is_batch()) {
            None => {
                self.later.retain(|member| *member != first);
                HandlerCall::One(first)
            }
            Some(command) => {
                let mut locked = BTreeSet::new();
                let joins = |other: &mut usize| joins(members, *other, command) && adds(members, *other, &mut locked);
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

/// Whether the member joins the call of a batch step. One call has the inputs of one tenant, also where tenants share commits.
fn joins<S: Store>(members: &[BatchEntry<S>], index: usize, command: &WorkItem<S>) -> bool {
    command_of(members, index).is_some_and(|other| {
        other.is_batch() && is_same_step(other, command) && other.saga.tenant == command.saga.tenant
    })
}

/// Adds the entities that the member locks to those that its call locks. Not if it locks one of them: then it has the next call.
fn adds<'a, S: Store>(members: &'a [BatchEntry<S>], index: usize, locked: &mut BTreeSet<&'a Entity>) -> bool {
    let entities = || command_of(members, index).into_iter().flat_map(|of| &of.locked).map(|locked| &locked.entity);
    let is_apart = !entities().any(|entity| locked.contains(entity));
    if is_apart {
        locked.extend(entities());
    }
    is_apart
}

/// Whether two commands are of one step of one definition.
pub(super) fn is_same_step<S: Store>(one: &WorkItem<S>, other: &WorkItem<S>) -> bool {
    let base = |command: &WorkItem<S>| command.saga.state.base(command.step_index());
    one.is_undo() == other.is_undo()
        && base(one) == base(other)
        && Arc::ptr_eq(&one.saga.definition, &other.saga.definition)
}
