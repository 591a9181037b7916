use std::fmt;

use super::super::refusal::{Refusal, write_reasons};

/// The moves of a saga to another version at each of its boundaries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moves {
    pub(super) points: u64,
    pub(super) moved: u64,
    pub(super) waited: u64,
    pub(super) unmoved: Vec<Refusal>,
}

impl Moves {
    /// At how many points it was to move: at each boundary after a crash and after a stop, and, where no transaction is
    /// open, while its process is held up there.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// At how many of them it was moved.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// How many were told at first that a step is under way, and asked again. Each of them is among those that were moved, or
    /// among those that were not.
    pub fn waited(&self) -> u64 {
        self.waited
    }

    /// The points at which it could not be moved, each with the reason that
    /// [`SagaControl::migrate`](saga_core::engine::SagaControl::migrate) gives. It went on in the old version there.
    pub fn unmoved(&self) -> &[Refusal] {
        &self.unmoved
    }
}

impl fmt::Display for Moves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { points, moved, waited, unmoved } = self;
        write!(f, "moved to another version at {moved} of {points} points, {waited} were told to wait")?;
        write_reasons(f, unmoved, |points, reason| format!("not moved at {points} points: {reason}"))
    }
}
