use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::Waker;

/// The timers that wait, soonest first; those of one moment in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    slots: Vec<Option<(u64, Waker)>>,
    free: Vec<usize>,
    made: u64,
}

/// Names a timer as long as it waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimerKey {
    slot: usize,
    made: u64,
}

impl Timers {
    pub(super) fn insert(&mut self, deadline: u64, waker: Waker) -> TimerKey {
        self.made += 1;
        let made = self.made;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some((made, waker));
        self.heap.push(Reverse((deadline, made, slot)));
        TimerKey { slot, made }
    }

    pub(super) fn remove(&mut self, key: TimerKey) {
        if self.slots[key.slot].as_ref().is_some_and(|(made, _)| *made == key.made) {
            self.slots[key.slot] = None;
            self.free.push(key.slot);
        }
    }

    pub(super) fn update(&mut self, key: TimerKey, waker: &Waker) -> bool {
        match &mut self.slots[key.slot] {
            Some((made, held)) if *made == key.made => {
                held.clone_from(waker);
                true
            }
            _ => false,
        }
    }

    /// When the next timer falls due. The heap keeps removed timers until they come to its top.
    pub(super) fn next(&mut self) -> Option<u64> {
        while let Some(Reverse((deadline, made, slot))) = self.heap.peek() {
            if self.slots[*slot].as_ref().is_some_and(|(held, _)| held == made) {
                return Some(*deadline);
            }
            self.heap.pop();
        }
        None
    }

    /// Wakes the tasks that wait for a moment up to `now`.
    pub(super) fn fire(&mut self, now: u64) {
        while self.next().is_some_and(|deadline| deadline <= now) {
            if let Some(Reverse((_, _, slot))) = self.heap.pop()
                && let Some((_, waker)) = self.slots[slot].take()
            {
                self.free.push(slot);
                waker.wake();
            }
        }
    }
}
