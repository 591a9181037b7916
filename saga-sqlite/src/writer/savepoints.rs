//! The savepoints of a step transaction.

use crate::aborted::{Aborted, conflict};
use crate::writer::job::JobFlow;
use crate::writer::session::{HANDLER, JOB, Savepoint, Session};

/// The savepoints of one job. One is set where the body says that a handler needs it.
#[derive(Debug, Default)]
pub(crate) struct Savepoints {
    /// The last savepoint.
    last: Option<Savepoint>,
    /// Whether nothing was written after it.
    is_unused: bool,
    /// Whether the first savepoint is before all writes of the job.
    covers_job: bool,
    /// Whether the job may have written.
    has_written: bool,
}

impl Savepoints {
    /// Sets a savepoint, if there is none without writes. The first one covers the whole job where nothing was written
    /// before it.
    pub(crate) fn set(&mut self, session: &Session) -> Result<(), Aborted> {
        if self.last.is_some() && self.is_unused {
            return Ok(());
        }
        self.close_handler(session)?;
        let is_around = self.last.is_none() && !self.has_written;
        let savepoint = if is_around { JOB } else { HANDLER };
        session.set(savepoint)?;
        self.covers_job |= is_around;
        (self.last, self.is_unused) = (Some(savepoint), true);
        Ok(())
    }

    /// The job may write from now on.
    pub(crate) fn note_write(&mut self) {
        self.has_written = true;
    }

    /// Keeps what was written behind the last savepoint.
    pub(crate) fn keep(&mut self) {
        self.is_unused = false;
    }

    pub(crate) fn roll_back(&mut self, session: &mut Session) -> Result<(), Aborted> {
        let none = || conflict("a handler failed and had no savepoint to go back to".to_owned());
        session.roll_back_to(self.last.ok_or_else(none)?)?;
        self.is_unused = true;
        Ok(())
    }

    /// SQLite copies every page that is written after a savepoint, so it ends with its handlers.
    pub(crate) fn close_handler(&mut self, session: &Session) -> Result<(), Aborted> {
        if self.last.take_if(|last| *last == HANDLER).is_some() {
            session.release(HANDLER)?;
        }
        Ok(())
    }

    /// Releases the savepoint of the whole job, if there is one.
    pub(crate) fn release_job(&self, session: &Session) -> Result<(), Aborted> {
        if self.covers_job {
            session.release(JOB)?;
        }
        Ok(())
    }

    /// Undoes all writes of the job, if that is possible without its group.
    pub(crate) fn undo_job(&self, session: &mut Session) -> JobFlow {
        match self.covers_job {
            // Without its savepoint there is nothing to go back to; then the job wrote nothing, or the whole
            // transaction is gone.
            true if session.roll_back_to(JOB).and_then(|()| session.release(JOB)).is_err() => JobFlow::RetryAlone,
            false if self.has_written => JobFlow::Fail,
            _ => JobFlow::Continue,
        }
    }
}
