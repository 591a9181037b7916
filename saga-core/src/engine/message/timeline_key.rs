//! Under which key the timeline of a saga is kept.

use std::sync::{Arc, LazyLock};

use crate::key::Key;
use crate::store::DefinitionId;

/// The name of the row that keeps a timeline, in the place of a step's. No step has it, since names have no `#`.
pub(crate) const NAME: &str = "timeline";

/// What the rows of timelines are listed under.
pub(crate) static TIMELINES: LazyLock<DefinitionId> =
    LazyLock::new(|| DefinitionId { name: Arc::from("timeline#0"), version: 1 });

/// The key under which the timeline of a saga is kept.
pub(crate) fn timeline_key(saga_key: &Key) -> Key {
    saga_key.hosted_for_event(NAME, 0)
}
