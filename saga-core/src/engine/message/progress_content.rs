//! Reports of steps that are hosted for another service: they are told to it, which keeps them on the row that waits for
//! the reply.
//!
//! Nothing rests on them. The host keeps its own, which is where the next call goes on; one that is lost on its way, or
//! comes when its step is over, is only not shown.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The bits that the number of a report has; those above are of the fence, which grows from one owner to the next.
const NUMBER_BITS: u32 = 32;

/// The highest fence that a number says: the stores keep numbers of 63 bits.
const FENCE_MAX: u64 = (1 << 31) - 1;

/// A report as it travels.
#[derive(Serialize, Deserialize)]
pub(crate) struct Content<'a> {
    /// Higher than that of every report before it, from any process.
    pub(crate) number: u64,
    #[serde(borrow)]
    pub(crate) report: &'a RawValue,
}

pub(crate) fn content(fence: u64, number: u64, report: &[u8]) -> Option<Vec<u8>> {
    let number = fence.min(FENCE_MAX) << NUMBER_BITS | number & u64::from(u32::MAX);
    serde_json::to_vec(&Content { number, report: serde_json::from_slice(report).ok()? }).ok()
}
