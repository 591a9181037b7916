use std::collections::BTreeSet;

use super::message::{Body, Held};

/// How many sagas have the key, one after the other.
pub(super) const SAGAS: usize = 2;

/// Everything that is, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all combinations may occur")]
pub struct World {
    /// The time of the service where the sagas are.
    pub now: i8,
    /// How far the host's clock is ahead of that.
    pub ahead: i8,
    /// Which saga has the key, or will have it next.
    pub saga: usize,
    /// How far this saga is.
    pub stage: Stage,
    /// What the host has under the key.
    pub row: Option<Row>,
    /// What was sent.
    pub messages: BTreeSet<Held>,
    /// How often the step took effect for each saga.
    pub effects: [u8; SAGAS],
    /// How often it was undone.
    pub undone: [u8; SAGAS],
    /// What may still happen.
    pub left: Left,
    /// Whether the step took effect for a saga that was purged.
    pub acted_on_purged: bool,
    /// Whether a saga was told of what was done for another one.
    pub told_of_another: bool,
    /// Whether an undo found no record of what stands.
    pub undid_nothing: bool,
    /// Whether a host acted on a message that was as old as it may be.
    pub acted_at_age_max: bool,
    /// Whether a host that asked was told of a saga that nothing is known of.
    pub told_of_unknown: bool,
}

/// How far a saga is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The key is free.
    Absent,
    /// The step was asked for.
    Asked,
    /// An operator reopened the saga, and its step is to be undone.
    Undoing,
    /// It ended then.
    Ended(i8),
    /// Only a tombstone is left, and is deleted then.
    Tombstone(i8),
}

/// The record of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Row {
    /// The saga for which the step was done or taken back.
    pub of: usize,
    /// Whether it is undone, or was taken back before it was done.
    pub is_undone: bool,
    /// When that was done, by the host's clock.
    pub ended_at: i8,
    /// When it is deleted, by the host's clock.
    pub delete_at: Option<i8>,
}

/// How often something may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Left {
    /// The broker loses a message.
    pub losses: u8,
    /// A command is sent again.
    pub sends: u8,
    /// An operator ends or reopens a saga.
    pub actions: u8,
    /// The host asks whether a saga is closed.
    pub questions: u8,
}

impl World {
    pub(super) fn new(ahead: i8, left: Left) -> Self {
        Self {
            now: 0,
            ahead,
            saga: 0,
            stage: Stage::Absent,
            row: None,
            messages: BTreeSet::new(),
            effects: [0; SAGAS],
            undone: [0; SAGAS],
            left,
            acted_on_purged: false,
            told_of_another: false,
            undid_nothing: false,
            acted_at_age_max: false,
            told_of_unknown: false,
        }
    }

    /// The time of the host.
    pub(super) fn host_now(&self) -> i8 {
        self.now + self.ahead
    }

    /// How old a message is to its receiver.
    pub(super) fn age(&self, message: &Held) -> i8 {
        let now = if message.body.is_for_host() { self.host_now() } else { self.now };
        now - message.at
    }

    /// Whether the records of a saga are gone.
    pub(super) fn is_purged(&self, saga: usize) -> bool {
        saga < self.saga || (saga == self.saga && matches!(self.stage, Stage::Tombstone(_)))
    }

    pub(super) fn send(&mut self, body: Body) {
        let at = if body.is_for_host() { self.now } else { self.host_now() };
        self.messages.insert(Held { body, at, has_come: false });
    }
}
