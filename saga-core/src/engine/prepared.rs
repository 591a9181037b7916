//! What a decision writes, and what follows when that is committed.

use std::time::Duration;

use super::command::{Command, InFlight};
use super::outcome::Outcome;
use crate::machine::SagaState;
use crate::step::Emitted;
use crate::store::{Changes, SagaId, Store};

/// What is known of an attempt besides how it ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    pub(super) output: Option<Vec<u8>>,
    pub(super) emitted: Vec<Emitted>,
    /// How many attempts were made, with this one.
    pub(super) attempts: u32,
    /// How long ago the last attempt began.
    pub(super) took: Duration,
    /// How much of that falls to this command: of a batch step's call a part.
    pub(super) share: Duration,
}

/// Where the next command goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct HandOn {
    /// The id for the next command's row.
    pub(super) id: i64,
    /// Whether there is a place for it in this process.
    pub(super) has_place: bool,
}

/// What is to be written, and what follows when it is committed.
pub(super) struct Prepared<S: Store> {
    /// Without the encoded state, which [`take_changes`](Prepared::take_changes) adds.
    pub(super) changes: Changes,
    /// The saga's state, where no successor carries it.
    pub(super) state: Option<SagaState>,
    /// The next command, leased to this process.
    pub(super) successor: Option<Command<S>>,
    /// After how long a command falls due that nobody has yet.
    pub(super) left_free: Option<Duration>,
    /// The saga moved; it has this outcome now, if it has one.
    pub(super) outcome: Option<(SagaId, Option<Outcome>)>,
    pub(super) has_messages: bool,
}

impl<S: Store> Prepared<S> {
    /// Nothing is written, and nothing follows.
    pub(super) fn nothing() -> Self {
        Self {
            changes: Changes::default(),
            state: None,
            successor: None,
            left_free: None,
            outcome: None,
            has_messages: false,
        }
    }

    /// Steps that were done, and one that is left for later.
    pub(super) fn left(changes: Changes, saga: InFlight<S>, due_in: Duration, has_messages: bool) -> Self {
        let (outcome, left_free) = (Some((saga.id, None)), Some(due_in));
        Self { changes, state: Some(saga.state), left_free, outcome, has_messages, ..Self::nothing() }
    }

    /// What is to be written.
    pub(super) fn take_changes(&mut self) -> Changes {
        let mut changes = std::mem::take(&mut self.changes);
        let state = self.successor.as_ref().map(|successor| &successor.saga.state).or(self.state.as_ref());
        if let (Some(advance), Some(state)) = (&mut changes.saga, state) {
            advance.state = state.encode();
        }
        changes
    }
}
