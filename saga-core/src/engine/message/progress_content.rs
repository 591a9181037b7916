//! The content of a progress report from a host to the coordinator, which keeps it on the work row that waits for the reply.
//!
//! It is for operators only. The next attempt reads the copy of the host. A report that is lost or late is only not shown.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// How many low bits the number of a report has. The high bits are the fencing token, which grows with each owner.
const NUMBER_BITS: u32 = 32;

/// The highest fencing token that fits: the stores keep numbers of 63 bits.
const FENCE_MAX: u64 = (1 << 31) - 1;

/// A report as it is sent.
#[derive(Serialize, Deserialize)]
pub(crate) struct Content<'a> {
    /// Higher than that of each earlier report, from any process.
    pub(crate) number: u64,
    #[serde(borrow)]
    pub(crate) report: &'a RawValue,
}

pub(crate) fn content(fence: u64, number: u64, report: &[u8]) -> Option<Vec<u8>> {
    let number = fence.min(FENCE_MAX) << NUMBER_BITS | number & u64::from(u32::MAX);
    serde_json::to_vec(&Content { number, report: serde_json::from_slice(report).ok()? }).ok()
}
