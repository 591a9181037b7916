//! What is known of an attempt besides how it ended.

use std::sync::Arc;
use std::time::Duration;

use crate::step::Emitted;

/// What is known of an attempt besides how it ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttemptDetails {
    pub(crate) output: Option<Vec<u8>>,
    pub(crate) emitted: Vec<Emitted>,
    /// How many attempts were made, with this one.
    pub(crate) attempts: u32,
    /// Whether the other side was asked when no call could be on its way any more.
    pub(crate) is_settled: bool,
    /// How long ago the last attempt began.
    pub(crate) took: Duration,
    /// How much of that falls to this command: of a batch step's call a part.
    pub(crate) share: Duration,
    /// The id of a signal that is delivered. Its payload is the output.
    pub(crate) signal_id: Option<String>,
    /// What the attempt reported last of how far it is.
    pub(crate) reported: Option<Arc<[u8]>>,
}
