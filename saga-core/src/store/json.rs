//! How times are written as JSON: as RFC 3339 has them.
#![expect(clippy::trivially_copy_pass_by_ref, clippy::ref_option, reason = "serde passes references to fields")]

use serde::{Serialize, Serializer};

use super::Timestamp;

pub(crate) fn time<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

pub(crate) fn optional_time<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(|at| at.to_string()).serialize(serializer)
}
