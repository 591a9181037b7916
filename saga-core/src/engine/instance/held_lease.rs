//! The lease of an exclusive step while its call lasts.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::store::MemberId;

/// The claim of an exclusive step, as it was renewed last.
#[derive(Debug, Default)]
pub(crate) struct HeldLease {
    /// The end of the lease by this process' clock, in nanoseconds.
    until: AtomicU64,
    /// As which member of its store this process has it: once it was taken for dead, it goes on as another one.
    pub(crate) member: AtomicI64,
}

impl HeldLease {
    /// It is this member's until then.
    pub(crate) fn renewed(&self, until: Duration, owner: MemberId) {
        self.until.store(u64::try_from(until.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
        self.member.store(owner.0, Ordering::Release);
    }

    pub(crate) fn until(&self) -> Duration {
        Duration::from_nanos(self.until.load(Ordering::Acquire))
    }

    /// Another process has it.
    pub(crate) fn lose(&self) {
        self.until.store(0, Ordering::Release);
    }
}
