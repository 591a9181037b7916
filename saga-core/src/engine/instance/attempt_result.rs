//! How an attempt ended.

use super::pending_commit::AttemptDetails;
use crate::machine::Ending;

/// An attempt that was made.
#[derive(Debug)]
pub(crate) struct AttemptResult {
    pub(crate) ending: Ending,
    pub(crate) findings: AttemptDetails,
}
