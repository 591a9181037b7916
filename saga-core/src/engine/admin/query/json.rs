//! How statuses are written as JSON: durations in seconds, and states by their names.
#![expect(clippy::trivially_copy_pass_by_ref, clippy::ref_option, reason = "serde passes references to fields")]

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::store::HistoryKind;
pub(crate) use crate::store::json::{optional_time, time};

pub(crate) fn optional_seconds<S: Serializer>(took: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    took.map(|took| took.as_secs_f64()).serialize(serializer)
}

pub(crate) fn history_kind<S: Serializer>(kind: &HistoryKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str())
}
