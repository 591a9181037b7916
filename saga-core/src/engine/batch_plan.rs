//! Which handlers a step transaction calls, and for which of its commands.

use std::collections::VecDeque;

use super::batch::Member;
use super::command::Command;
use crate::store::Store;

/// The members of a transaction whose handler is called at once: one, or those of a batch step.
pub(super) type Call = Vec<usize>;

/// The calls that a transaction still has to make.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Whose handler was called by now, by itself or with another's; those that were not granted count as such.
    begun: Vec<bool>,
    /// The calls that come next: what a call was split into, and steps that run on by themselves.
    next: VecDeque<Call>,
    /// The calls of batch steps that sagas ran on to. They wait until every command had its first call, so that all that
    /// come as far share one.
    later: Vec<Call>,
    /// Of the latest call.
    latest: Call,
}

impl Plan {
    /// The plan for commands that were granted, or were not.
    pub(super) fn of_granted(granted: &[bool]) -> Self {
        Self { begun: granted.iter().map(|granted| !granted).collect(), ..Self::default() }
    }

    /// Whether the handler of that command was called by now.
    pub(super) fn has_begun(&self, index: usize) -> bool {
        self.begun.get(index).copied().unwrap_or_default()
    }

    /// Whether another call follows before the next command has its turn.
    pub(super) fn has_more(&self) -> bool {
        !self.next.is_empty() || (!self.later.is_empty() && self.begun.iter().all(|begun| *begun))
    }

    /// One of the members of the call that comes next, when that command has its turn.
    pub(super) fn is_next<S: Store>(&self, members: &[Member<S>], index: usize) -> usize {
        let next = self.next.front().or_else(|| if self.has_begun(index) { self.first_later(members) } else { None });
        next.and_then(|call| call.first().copied()).unwrap_or(index)
    }

    /// Takes the call that comes next, when that command has its turn.
    pub(super) fn take_next<S: Store>(&mut self, members: &[Member<S>], index: usize) -> Call {
        let call = if let Some(call) = self.next.pop_front() {
            call
        } else if self.has_begun(index) {
            let first = self.first_later(members).and_then(|first| self.later.iter().position(|call| call == first));
            first.map(|first| self.later.swap_remove(first)).unwrap_or_default()
        } else {
            self.begin(members, index)
        };
        self.latest.clone_from(&call);
        call
    }

    /// A call is made again in parts.
    pub(super) fn split(&mut self, parts: impl DoubleEndedIterator<Item = Call>) {
        for part in parts.rev().filter(|part| !part.is_empty()) {
            self.next.push_front(part);
        }
    }

    /// The saga of that member ran on to its next step.
    pub(super) fn ran_on<S: Store>(&mut self, members: &[Member<S>], index: usize) {
        let Some(command) = members.get(index).and_then(|member| member.command.as_ref()) else { return };
        if !command.is_batch() {
            self.next.push_back(vec![index]);
            return;
        }
        let joins = |call: &&mut Call| call.first().is_some_and(|first| is_same_step(members, *first, command));
        match self.later.iter_mut().find(joins) {
            Some(call) => call.push(index),
            None => self.later.push(vec![index]),
        }
    }

    /// The members of the latest call, who are to blame for what went wrong since.
    pub(super) fn latest(&self) -> &[usize] {
        &self.latest
    }

    /// The first call of that command, together with those that a batch step takes along.
    fn begin<S: Store>(&mut self, members: &[Member<S>], index: usize) -> Call {
        let command = members.get(index).and_then(|member| member.command.as_ref());
        let call = match command.filter(|command| command.is_batch()) {
            None => vec![index],
            Some(command) => {
                let joins = |other: &usize| !self.has_begun(*other) && is_same_step(members, *other, command);
                (index..members.len()).filter(joins).collect()
            }
        };
        for member in &call {
            if let Some(begun) = self.begun.get_mut(*member) {
                *begun = true;
            }
        }
        call
    }

    /// Of the calls for later that of the earliest step, so that its sagas meet those that are further.
    fn first_later<S: Store>(&self, members: &[Member<S>]) -> Option<&Call> {
        let step = |call: &&Call| {
            let first = call.first().and_then(|first| members.get(*first)?.command.as_ref());
            first.map(Command::step_index)
        };
        self.later.iter().min_by_key(step)
    }
}

/// Two halves of a call.
pub(super) fn halves(mut call: Call) -> [Call; 2] {
    let second = call.split_off(call.len() / 2);
    [call, second]
}

fn is_same_step<S: Store>(members: &[Member<S>], index: usize, command: &Command<S>) -> bool {
    let other = members.get(index).and_then(|member| member.command.as_ref());
    other.is_some_and(|other| other.is_batch() && other.is_same_step(command))
}
