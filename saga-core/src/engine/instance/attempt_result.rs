//! How an attempt ended.

use super::attempt_details::AttemptDetails;
use crate::machine::Ending;

/// An attempt that was made.
#[derive(Debug)]
pub(crate) struct AttemptResult {
    pub(crate) ending: Ending,
    pub(crate) findings: AttemptDetails,
}
