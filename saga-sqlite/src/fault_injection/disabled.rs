//! Without the feature every answer arrives.

#![expect(clippy::unused_self, clippy::trivially_copy_pass_by_ref, reason = "the signatures are those of `enabled.rs`")]

use crate::writer::job::BoxedJob;

#[derive(Debug, Clone, Copy)]
pub(crate) struct CommitFault;

impl CommitFault {
    pub(crate) const NONE: Self = Self;

    pub(crate) fn apply(&self, job: BoxedJob) -> BoxedJob {
        job
    }
}
