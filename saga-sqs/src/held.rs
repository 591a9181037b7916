//! The messages of a subscription that this process has: from their receipt until SQS has them deleted, or back.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::time::Duration;

use saga_core::transport::Settlement;
use tokio::time::Instant;

/// For how long SQS lets a receiver have a message.
const HELD_MAX: Duration = Duration::from_hours(12);
/// How many messages a receiver holds at most, in multiples of its prefetch: those that SQS does not delete add up. With a prefetch of one,
/// ten still fill a request of deletions.
const HELD_PER_PREFETCH: usize = 10;

/// A message as SQS handed it out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Received {
    /// What it is settled by.
    pub(crate) handle: String,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) body: String,
    /// How often it was handed out, this time included.
    pub(crate) receives: u32,
    /// For a dead letter: the queue that it was in, where SQS says it.
    pub(crate) died_in: Option<String>,
}

/// A message that this process has.
#[derive(Debug)]
struct Held {
    /// Without attributes and body once the receiver has them.
    received: Received,
    received_at: Instant,
    /// Until when SQS withholds it from others.
    hidden_until: Instant,
    place: Place,
}

/// Where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It waits for the receiver.
    Waiting,
    /// The receiver has it.
    HandedOut,
    /// It is settled, and SQS does not know that yet.
    Settled(Settlement),
}

/// The messages that this process has, by their tags, which grow.
#[derive(Debug)]
pub(crate) struct HeldMessages {
    messages: BTreeMap<u64, Held>,
    waiting: VecDeque<u64>,
    next_tag: u64,
    prefetch: usize,
    visibility: Duration,
    is_closed: bool,
}

/// What has to be asked of SQS so that messages stay here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Those to withhold for longer: their tags and handles.
    pub(crate) extended: Vec<(u64, String)>,
    /// Those that SQS hands out again, since they were here for too long.
    pub(crate) lost: Vec<u64>,
}

impl HeldMessages {
    pub(crate) fn new(prefetch: usize, visibility: Duration) -> Self {
        let (messages, waiting) = (BTreeMap::new(), VecDeque::new());
        Self { messages, waiting, next_tag: 0, prefetch: prefetch.max(1), visibility, is_closed: false }
    }

    /// How many messages may be received. A message that is settled takes no room of the prefetch, but SQS may not take it for long.
    pub(crate) fn room(&self) -> usize {
        if self.is_closed {
            return 0;
        }
        let limit = self.prefetch.saturating_mul(HELD_PER_PREFETCH);
        self.prefetch.saturating_sub(self.unsettled()).min(limit.saturating_sub(self.messages.len()))
    }

    /// How many messages are neither accepted nor rejected.
    pub(crate) fn unsettled(&self) -> usize {
        self.messages.values().filter(|held| !matches!(held.place, Place::Settled(_))).count()
    }

    /// Adds what was handed out at this time. It goes back at once where the receiver is gone.
    pub(crate) fn add(&mut self, received: Vec<Received>, handed_out_at: Instant) {
        for received in received {
            let tag = self.next_tag;
            self.next_tag += 1;
            let place = if self.is_closed { Place::Settled(Settlement::Reject) } else { Place::Waiting };
            if place == Place::Waiting {
                self.waiting.push_back(tag);
            }
            let hidden_until = handed_out_at + self.visibility;
            self.messages.insert(tag, Held { received, received_at: handed_out_at, hidden_until, place });
        }
    }

    /// Hands out messages, in the order in which they came.
    pub(crate) fn take(&mut self, limit: usize) -> Vec<(u64, Received)> {
        let mut taken = Vec::new();
        while taken.len() < limit
            && let Some(tag) = self.waiting.pop_front()
        {
            if let Some(held) = self.messages.get_mut(&tag) {
                held.place = Place::HandedOut;
                let Received { handle, receives, .. } = &held.received;
                let kept = Received { handle: handle.clone(), receives: *receives, ..Received::default() };
                taken.push((tag, mem::replace(&mut held.received, kept)));
            }
        }
        taken
    }

    /// Settles a message that the receiver has; how often it was received. Of any other tag it does nothing.
    pub(crate) fn settle(&mut self, tag: u64, settlement: Settlement) -> Option<u32> {
        let held = self.messages.get_mut(&tag).filter(|held| held.place == Place::HandedOut)?;
        held.place = Place::Settled(settlement);
        Some(held.received.receives)
    }

    /// What SQS has to be told, for one request: up to `limit` messages that are settled alike.
    pub(crate) fn settled(&self, settlement: Settlement, limit: usize) -> Vec<(u64, String)> {
        let settled = self.messages.iter().filter(|(_, held)| held.place == Place::Settled(settlement));
        settled.take(limit).map(|(tag, held)| (*tag, held.received.handle.clone())).collect()
    }

    /// SQS has it, or hands it out again.
    pub(crate) fn forget(&mut self, tag: u64) {
        self.messages.remove(&tag);
    }

    /// SQS withholds it for another while, from this time on.
    pub(crate) fn extended(&mut self, tag: u64, asked_at: Instant) {
        if let Some(held) = self.messages.get_mut(&tag) {
            held.hidden_until = asked_at + self.visibility;
        }
    }

    /// The messages whose visibility is to be extended now, at most `limit`: a third of it has passed.
    pub(crate) fn due(&self, now: Instant, limit: usize) -> Due {
        let mut due = Due::default();
        for (tag, held) in &self.messages {
            let may_be_extended = now + self.visibility <= held.received_at + HELD_MAX;
            if !may_be_extended && now >= held.hidden_until {
                due.lost.push(*tag);
            } else if may_be_extended && now >= self.due_at(held) && due.extended.len() < limit {
                due.extended.push((*tag, held.received.handle.clone()));
            }
        }
        due
    }

    /// When something is due next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let at = |held: &Held| {
            let due_at = self.due_at(held);
            if due_at + self.visibility <= held.received_at + HELD_MAX { due_at } else { held.hidden_until }
        };
        self.messages.values().map(at).min()
    }

    fn due_at(&self, held: &Held) -> Instant {
        held.hidden_until - self.visibility / 3 * 2
    }

    /// The receiver is gone: what is not settled goes back.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.waiting.clear();
        for held in self.messages.values_mut() {
            if !matches!(held.place, Place::Settled(_)) {
                held.place = Place::Settled(Settlement::Reject);
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
