//! The faults of the feature `fault-injection`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::GroupError;
use crate::writer::job::{BoxedJob, Completion, Job, JobFlow};
use crate::writer::session::{JOB, Session};

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

    /// The next commit loses its answer; `is_committed` says whether it takes place.
    pub(crate) fn lose_next(is_committed: bool) -> Self {
        Self(Some(Arc::new(LostCommit { is_committed, is_used: AtomicBool::new(false) })))
    }

    /// The job, whose answer is lost if it is the first of a handle with this fault.
    pub(crate) fn apply(&self, job: BoxedJob) -> BoxedJob {
        match self.0.as_deref().filter(|lost| !lost.is_used.swap(true, Ordering::Relaxed)) {
            Some(lost) => Box::new(LostAnswer { job, is_committed: lost.is_committed }),
            None => job,
        }
    }
}

/// A job whose caller does not learn whether it was committed.
struct LostAnswer {
    job: BoxedJob,
    is_committed: bool,
}

impl Job for LostAnswer {
    fn run(&mut self, session: &mut Session) -> JobFlow {
        if session.set(JOB).is_err() {
            return JobFlow::RetryAlone;
        }
        let flow = self.job.run(session);
        if flow != JobFlow::Continue {
            return flow;
        }
        let back = if self.is_committed { Ok(()) } else { session.roll_back_to(JOB) };
        if back.and_then(|()| session.release(JOB)).is_err() { JobFlow::RetryAlone } else { JobFlow::Continue }
    }

    fn complete(self: Box<Self>, _: Completion<'_>) {
        self.job.complete(Completion::Failed(&GroupError::lost_answer()));
    }
}
