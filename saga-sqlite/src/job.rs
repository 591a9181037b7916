//! What the writer thread is given to do.

use std::panic::{AssertUnwindSafe, catch_unwind};

use saga_core::store::{StoreError, StoreErrorKind};
use tokio::sync::oneshot;

use crate::error::{Failure, GroupError, panic_text, store_error};
use crate::session::Session;

/// One call, which shares its commit with others.
///
/// A job may run several times, each time from its start in a new transaction; only the answer of the run that was
/// committed counts. The job keeps its answer until then.
pub(crate) trait Job: Send {
    /// Works in the transaction that is open.
    fn run(&mut self, session: &mut Session) -> JobFlow;

    /// Tells the caller what became of the job.
    fn complete(self: Box<Self>, fate: Completion<'_>);
}

pub(crate) type BoxedJob = Box<dyn Job>;

/// How the group goes on behind a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobFlow {
    /// With the next one. The job has an answer, good or bad, and left the transaction as it should.
    Continue,
    /// Not: the transaction may hold half of the job. It is rolled back, and the job runs once more, alone.
    RetryAlone,
    /// Not: the transaction is rolled back, and the job has failed for good.
    Fail,
}

/// What became of a job.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Completion<'a> {
    /// What its last run answered stands.
    Answered,
    /// The group failed.
    Failed(&'a GroupError),
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A job that is one function, which checks before it writes.
pub(crate) struct Call<T, F> {
    operation: &'static str,
    function: F,
    answer: Option<Result<T, StoreError>>,
    reply: Reply<T>,
}

impl<T, F> Call<T, F>
where
    T: Send,
    F: FnMut(&mut Session) -> Result<T, Failure> + Send,
{
    pub(crate) fn new(operation: &'static str, function: F, reply: Reply<T>) -> Self {
        Self { operation, function, answer: None, reply }
    }
}

impl<T, F> Job for Call<T, F>
where
    T: Send,
    F: FnMut(&mut Session) -> Result<T, Failure> + Send,
{
    fn run(&mut self, session: &mut Session) -> JobFlow {
        let ran = catch_unwind(AssertUnwindSafe(|| (self.function)(session)));
        let (answer, flow) = match ran {
            Ok(Ok(answer)) => (Ok(answer), JobFlow::Continue),
            Ok(Err(Failure::Refused(error))) => (Err(error), JobFlow::Continue),
            Ok(Err(Failure::Half(error))) => (Err(error), JobFlow::RetryAlone),
            Ok(Err(Failure::Sql(error))) => (Err(store_error(self.operation, error)), JobFlow::RetryAlone),
            Err(panic) => (Err(panicked(self.operation, &*panic)), JobFlow::Fail),
        };
        self.answer = Some(answer);
        flow
    }

    fn complete(self: Box<Self>, fate: Completion<'_>) {
        let Self { operation, function, answer, reply } = *self;
        drop_callers_value(function);
        let answer = match fate {
            Completion::Failed(error) => Err(error.error(operation)),
            Completion::Answered => answer.unwrap_or_else(|| Err(unanswered(operation))),
        };
        // A caller who went away does not want to know.
        _ = reply.send(answer);
    }
}

/// Drops what a caller gave, before the caller is answered: then nothing of it is left with the store. It may be the
/// user's, and may panic.
pub(crate) fn drop_callers_value<T>(given: T) {
    if catch_unwind(AssertUnwindSafe(|| drop(given))).is_err() {
        tracing::error!("a value panicked when it was dropped on the writer thread");
    }
}

pub(crate) fn panicked(operation: &'static str, panic: &(dyn std::any::Any + Send)) -> StoreError {
    StoreError::new(StoreErrorKind::Other, operation, format!("panicked on the writer thread: {}", panic_text(panic)))
}

/// A job that is settled as answered was run before; this only says so if that is ever wrong.
pub(crate) fn unanswered(operation: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Other, operation, "the writer settled a call that it had not run")
}
