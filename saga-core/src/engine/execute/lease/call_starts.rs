//! Records the beginnings of claimed calls in the store, many in one statement.

use std::time::Duration;

use crate::engine::store_calls::{Batcher, RecordError};
use crate::store::WorkRef;

/// Claimed calls whose beginning the store does not know yet.
#[derive(Debug)]
pub(crate) struct CallStarts {
    pub(super) calls: Batcher<(WorkRef, Duration), Result<Begun, RecordError>>,
}

/// The new end of the lease and its owner; `None` if another process has the row.
pub(super) type Begun = Option<(Duration, crate::store::MemberId)>;

impl CallStarts {
    pub(crate) fn new() -> Self {
        Self { calls: Batcher::new() }
    }
}
