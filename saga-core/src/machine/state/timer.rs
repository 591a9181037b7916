//! Work rows that only wait for their time: those of steps that wait, and the one of the saga's deadline. The state names
//! them, so that a decision can withdraw them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::store::{SagaId, WorkId};

/// The name of such a row in the saga's state.
///
/// The state of a new saga is encoded before the saga and its first rows have ids. The ids of one saga's rows follow its
/// own, so the first rows are named by their distance to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Timer(i64);

impl Timer {
    /// The row of that number among those that the saga is started with, counted from 0.
    pub const fn started_with(number: usize) -> Self {
        // A saga has a thousand steps at most.
        Self(-1 - number.cast_signed() as i64)
    }

    /// A row that was written later.
    pub const fn of(row: WorkId) -> Self {
        Self(row.0)
    }

    /// The row.
    pub const fn row(self, saga: SagaId) -> WorkId {
        if self.0 < 0 { WorkId(saga.0 - self.0) } else { WorkId(self.0) }
    }
}

/// The deadline of a saga that has not begun its pivot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// The work row that falls due when it passes.
    #[serde(rename = "t")]
    pub timer: Timer,
    /// How long the saga had, counted from when it was to begin.
    #[serde(rename = "d")]
    pub within: Duration,
}
