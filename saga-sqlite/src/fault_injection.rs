//! Fault injection for the tests: commits whose answer is lost.
//!
//! Only the cargo feature `fault-injection` builds this file; otherwise `no_fault_injection.rs` takes its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::GroupError;
use crate::group::BoxedJob;
use crate::job::{Fate, Flow, Job};
use crate::session::{JOB, Session};
use crate::store::SqliteStore;

/// Whether the next job of a store handle loses its answer.
#[derive(Debug, Clone)]
pub(crate) struct CommitFault(Option<Arc<LostCommit>>);

#[derive(Debug)]
struct LostCommit {
    is_committed: bool,
    is_used: AtomicBool,
}

impl CommitFault {
    pub(crate) const NONE: Self = Self(None);

    /// The job, whose answer is lost if it is the first of a handle with this fault.
    pub(crate) fn apply(&self, job: BoxedJob) -> BoxedJob {
        match self.0.as_deref().filter(|lost| !lost.is_used.swap(true, Ordering::Relaxed)) {
            Some(lost) => Box::new(LostAnswer { job, is_committed: lost.is_committed }),
            None => job,
        }
    }
}

impl SqliteStore {
    /// A handle on the same store whose next commit is answered as unknown. `is_committed` says whether it took place.
    #[doc(hidden)]
    #[must_use]
    pub fn with_lost_commit(&self, is_committed: bool) -> Self {
        let lost = LostCommit { is_committed, is_used: AtomicBool::new(false) };
        let mut store = self.clone();
        store.commit_fault = CommitFault(Some(Arc::new(lost)));
        store
    }
}

/// A job whose caller does not learn whether it was committed.
struct LostAnswer {
    job: BoxedJob,
    is_committed: bool,
}

impl Job for LostAnswer {
    fn run(&mut self, session: &mut Session) -> Flow {
        if session.set(JOB).is_err() {
            return Flow::Broken;
        }
        let flow = self.job.run(session);
        if flow != Flow::GoOn {
            return flow;
        }
        let back = if self.is_committed { Ok(()) } else { session.roll_back_to(JOB) };
        if back.and_then(|()| session.release(JOB)).is_err() { Flow::Broken } else { Flow::GoOn }
    }

    fn settle(self: Box<Self>, _: Fate<'_>) {
        self.job.settle(Fate::Failed(&GroupError::lost_answer()));
    }
}
