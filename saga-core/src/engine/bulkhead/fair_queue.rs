//! A queue in which the definitions take turns.

use std::collections::{HashMap, VecDeque};

/// Commands in the order in which they are taken: in order of arrival within a flow, and the flows in turn, however many commands
/// each of them has. A definition is one flow or two: see [`ConcurrencyKey::flow`](super::ConcurrencyKey::flow).
///
/// This is start-time fair queueing. Each command gets the turn behind the last one of its flow, and none gets an earlier
/// turn than the command that was taken last.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    queued: VecDeque<Queued<T>>,
    /// The last turn of each flow since the queue was empty.
    turns: HashMap<u32, u64>,
    /// The turn of the command that was taken last.
    turn: u64,
}

#[derive(Debug)]
struct Queued<T> {
    turn: u64,
    flow: u32,
    command: T,
}

impl<T> FairQueue<T> {
    pub(crate) fn new() -> Self {
        Self { queued: VecDeque::new(), turns: HashMap::new(), turn: 0 }
    }

    pub(crate) fn push(&mut self, flow: u32, command: T) {
        let last = self.turns.entry(flow).or_insert(0);
        let turn = self.turn.max(*last + 1);
        *last = turn;
        // With one flow this is always the end.
        let at = match self.queued.back() {
            Some(last) if last.turn > turn => self.queued.partition_point(|queued| queued.turn <= turn),
            _ => self.queued.len(),
        };
        self.queued.insert(at, Queued { turn, flow, command });
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.queued.get(at).map(|queued| &queued.command)
    }

    pub(crate) fn remove(&mut self, at: usize) -> Option<T> {
        let Queued { turn, command, .. } = self.queued.remove(at)?;
        self.turn = self.turn.max(turn);
        self.forget_turns();
        Some(command)
    }

    /// Keeps the commands for which `keep` returns true; it may change them.
    pub(crate) fn retain_mut(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        self.queued.retain_mut(|queued| keep(&mut queued.command));
        self.forget_turns();
    }

    /// Removes the items for which `takes` returns true, beginning with the last one. The turns of the other items do
    /// not change.
    pub(crate) fn take_last(&mut self, mut takes: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut last_ones = Vec::new();
        for at in (0..self.queued.len()).rev() {
            if takes(&self.queued[at].command) {
                last_ones.extend(self.queued.remove(at).map(|queued| queued.command));
            }
        }
        self.forget_turns();
        last_ones
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.queued.iter().map(|queued| &queued.command)
    }

    /// Whether the flow has a command.
    pub(crate) fn has_of(&self, flow: u32) -> bool {
        self.queued.iter().any(|queued| queued.flow == flow)
    }

    pub(crate) fn len(&self) -> usize {
        self.queued.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.turns.clear();
        self.turn = 0;
        self.queued.drain(..).map(|queued| queued.command)
    }

    /// Turns count from zero again once the queue is empty.
    fn forget_turns(&mut self) {
        if self.queued.is_empty() {
            self.turns.clear();
            self.turn = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(queue: &mut FairQueue<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.remove(0)).collect()
    }

    #[test]
    fn flows_take_turns() {
        let mut queue = FairQueue::new();
        for command in ["a1", "a2", "a3"] {
            queue.push(0, command);
        }
        for command in ["b1", "b2"] {
            queue.push(1, command);
        }
        queue.push(2, "c1");
        assert_eq!(take_all(&mut queue), ["a1", "b1", "c1", "a2", "b2", "a3"]);
    }

    #[test]
    fn a_flow_that_was_idle_saves_no_turns() {
        let mut queue = FairQueue::new();
        for command in ["a1", "a2", "a3", "a4"] {
            queue.push(0, command);
        }
        assert_eq!((queue.remove(0), queue.remove(0)), (Some("a1"), Some("a2")));
        for command in ["b1", "b2"] {
            queue.push(1, command);
        }
        assert_eq!(take_all(&mut queue), ["b1", "a3", "b2", "a4"]);
    }

    #[test]
    fn the_last_ones_are_given_away_first() {
        let mut queue = FairQueue::new();
        for (flow, command) in [(0, "a1"), (1, "b1"), (0, "a2"), (0, "a3")] {
            queue.push(flow, command);
        }
        let mut surplus = 2;
        let taken = queue.take_last(|command| {
            let is_taken = surplus > 0 && command.starts_with('a');
            surplus -= usize::from(is_taken);
            is_taken
        });
        assert_eq!(taken, ["a3", "a2"]);
        assert_eq!(take_all(&mut queue), ["a1", "b1"]);
    }

    #[test]
    fn alone_a_flow_is_served_as_it_comes() {
        let mut queue = FairQueue::new();
        for command in ["a1", "a2"] {
            queue.push(0, command);
        }
        assert_eq!(queue.remove(1), Some("a2"), "one that is passed over keeps its turn");
        queue.push(0, "a3");
        assert_eq!((queue.get(0), queue.len()), (Some(&"a1"), 2));
        assert_eq!(take_all(&mut queue), ["a1", "a3"]);
    }
}
