//! A request that takes effect once, as a job of the writer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;
use saga_core::store::{Admission, KeyVerdict, KeyedBody, KeyedRequest, RetryClass, StoreError, StoreErrorKind};
use tokio::runtime::Handle;

use crate::error::store_error;
use crate::statements::kept_requests::{Kept, keep, look_up};
use crate::writer::job::{Completion, Job, JobFlow, Reply, drop_callers_value, panicked, unanswered};
use crate::writer::session::{JOB, Session};

pub(crate) const OPERATION: &str = "run_once";

/// A request as a job. The savepoint of the job is in front of the body's writes.
pub(crate) struct Keyed {
    request: Option<KeyedRequest>,
    body: Box<dyn KeyedBody<Connection>>,
    /// The runtime of the caller, so that the body can use timers and sockets.
    runtime: Option<Handle>,
    answer: Option<Answer>,
    reply: Reply<Admission<()>>,
}

/// How a run of the body ended.
type Ran = std::thread::Result<Option<KeyVerdict>>;
/// What the caller is answered.
type Answer = Result<Admission<()>, StoreError>;
/// Whether the writes are kept, and the response to keep.
type KeptOfRun = (bool, Option<Vec<u8>>);

impl Keyed {
    pub(crate) fn new(
        request: Option<KeyedRequest>,
        body: Box<dyn KeyedBody<Connection>>,
        reply: Reply<Admission<()>>,
    ) -> Self {
        Self { request, body, runtime: Handle::try_current().ok(), answer: None, reply }
    }

    fn run_in(&mut self, session: &mut Session) -> rusqlite::Result<JobFlow> {
        let now = session.now();
        let mut epoch = 0;
        if let Some(request) = &self.request {
            match look_up(&session.conn, request, now)? {
                Admission::Granted(next) => epoch = next,
                Admission::Replay(response) => return Ok(self.answered(Ok(Admission::Replay(response)))),
                Admission::InFlight => return Ok(self.answered(Ok(Admission::InFlight))),
                Admission::OtherRequest => return Ok(self.answered(Ok(Admission::OtherRequest))),
            }
        }
        session.set(JOB)?;
        let limit = session.shared.options.write_time_max;
        let body = &mut self.body;
        let ran = catch_unwind(AssertUnwindSafe(|| session.run_guarded(limit, async |conn| body.run(conn).await)));
        // SQLite may have ended the transaction by itself, with the savepoint.
        let is_gone = session.conn.is_autocommit();
        let (answer, response) = judge(session, ran, is_gone);
        self.answer = Some(answer);
        if is_gone {
            let is_at_fault = session.authorizer.tried_to_end_transaction() || session.authorizer.was_interrupted();
            return Ok(if is_at_fault { JobFlow::Fail } else { JobFlow::RetryAlone });
        }
        let (keeps_writes, response) = response;
        if !keeps_writes {
            session.roll_back_to(JOB)?;
        }
        if let (Some(request), Some(response)) = (&self.request, &response) {
            keep(&session.conn, request, (epoch, now), Kept::Answered(response))?;
        }
        session.release(JOB)?;
        Ok(JobFlow::Continue)
    }

    fn answered(&mut self, answer: Answer) -> JobFlow {
        self.answer = Some(answer);
        JobFlow::Continue
    }
}

impl Job for Keyed {
    fn run(&mut self, session: &mut Session) -> JobFlow {
        let runtime = self.runtime.clone();
        let _entered = runtime.as_ref().map(Handle::enter);
        match self.run_in(session) {
            Ok(flow) => flow,
            Err(error) => {
                self.answer = Some(Err(store_error(OPERATION, error)));
                JobFlow::RetryAlone
            }
        }
    }

    fn complete(self: Box<Self>, completion: Completion<'_>) {
        let Self { body, answer, reply, .. } = *self;
        drop_callers_value(body);
        let answer = match completion {
            Completion::Answered => answer.unwrap_or_else(|| Err(unanswered(OPERATION))),
            Completion::Failed(error) => Err(error.error(OPERATION)),
        };
        // The caller may have dropped its future.
        _ = reply.send(answer);
    }
}

/// The answer after a run of the body, whether its writes are kept, and the response to keep.
fn judge(session: &Session, ran: Ran, is_gone: bool) -> (Answer, KeptOfRun) {
    let refuse = |kind, detail: &str| Err(StoreError::new(kind, OPERATION, detail));
    let nothing = (false, None);
    if session.authorizer.tried_to_end_transaction() {
        return (refuse(StoreErrorKind::Misuse, "the body ended the transaction that it was given"), nothing);
    }
    if is_gone {
        let detail = if session.authorizer.was_interrupted() {
            "a statement ran past the time limit"
        } else {
            "SQLite rolled the transaction back by itself"
        };
        return (refuse(StoreErrorKind::Unavailable, detail), nothing);
    }
    match ran {
        Err(panic) => (Err(panicked(OPERATION, &*panic)), nothing),
        Ok(None) => (refuse(StoreErrorKind::Unavailable, "the body did not end within its time limit"), nothing),
        Ok(Some(KeyVerdict::Keep(response))) => (Ok(Admission::Granted(())), (true, Some(response))),
        Ok(Some(KeyVerdict::RollBackAndKeep(response))) => (Ok(Admission::Granted(())), (false, Some(response))),
        Ok(Some(KeyVerdict::RollBack)) => (Ok(Admission::Granted(())), nothing),
        Ok(Some(KeyVerdict::Abandon)) => {
            let error = StoreError::new(StoreErrorKind::Other, OPERATION, "the body was dropped before its end");
            (Err(error.with_class(RetryClass::Transient)), nothing)
        }
    }
}
