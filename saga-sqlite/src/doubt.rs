//! Commits whose answer gets lost, for tests of those who have to live with it.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::GroupError;
use crate::group::BoxedJob;
use crate::job::{Fate, Flow, Job};
use crate::session::{JOB, Session};

/// What becomes of the next job of a handle.
#[derive(Debug)]
pub(crate) struct Doubt {
    commits: bool,
    is_cast: AtomicBool,
}

impl Doubt {
    pub(crate) fn new(commits: bool) -> Self {
        Self { commits, is_cast: AtomicBool::new(false) }
    }

    /// The job, whose answer gets lost if it is the first.
    pub(crate) fn cast_on(&self, job: BoxedJob) -> BoxedJob {
        if self.is_cast.swap(true, Ordering::Relaxed) {
            return job;
        }
        Box::new(Doubtful { job, commits: self.commits })
    }
}

struct Doubtful {
    job: BoxedJob,
    commits: bool,
}

impl Job for Doubtful {
    fn run(&mut self, session: &mut Session) -> Flow {
        if session.set(JOB).is_err() {
            return Flow::Broken;
        }
        let flow = self.job.run(session);
        if flow != Flow::GoOn {
            return flow;
        }
        let back = if self.commits { Ok(()) } else { session.roll_back_to(JOB) };
        if back.and_then(|()| session.release(JOB)).is_err() { Flow::Broken } else { Flow::GoOn }
    }

    fn settle(self: Box<Self>, _: Fate<'_>) {
        self.job.settle(Fate::Failed(&GroupError::doubtful()));
    }
}
