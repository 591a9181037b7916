//! Calls that are about to begin.

use std::time::Duration;

use crate::engine::store_calls::{Batcher, RecordError};
use crate::store::WorkRef;

/// Calls that are about to begin: those that come together are told to the store together.
#[derive(Debug)]
pub(crate) struct CallStarts {
    pub(super) calls: Batcher<(WorkRef, Duration), Result<Begun, RecordError>>,
}

/// For how long a row that begins is leased, and to which member; `None` if another process has it.
pub(super) type Begun = Option<(Duration, crate::store::MemberId)>;

impl CallStarts {
    pub(crate) fn new() -> Self {
        Self { calls: Batcher::new() }
    }
}
