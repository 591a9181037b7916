//! What `fault_injection.rs` is without the cargo feature `fault-injection`: every answer arrives.

#![expect(
    clippy::unused_self,
    clippy::trivially_copy_pass_by_ref,
    reason = "the signatures are those of `fault_injection.rs`"
)]

use crate::group::BoxedJob;

#[derive(Debug, Clone, Copy)]
pub(crate) struct CommitFault;

impl CommitFault {
    pub(crate) const NONE: Self = Self;

    pub(crate) fn apply(&self, job: BoxedJob) -> BoxedJob {
        job
    }
}
