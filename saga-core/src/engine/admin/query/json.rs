//! How statuses are written as JSON: times as RFC 3339 has them, durations in seconds, and states by their names.
#![expect(clippy::trivially_copy_pass_by_ref, clippy::ref_option, reason = "serde passes references to fields")]

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::store::{HistoryKind, Timestamp};

pub(crate) fn time<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

pub(crate) fn optional_time<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(|at| at.to_string()).serialize(serializer)
}

pub(crate) fn optional_seconds<S: Serializer>(took: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    took.map(|took| took.as_secs_f64()).serialize(serializer)
}

pub(crate) fn history_kind<S: Serializer>(kind: &HistoryKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str())
}
