//! Jobs for the writer thread.

use std::panic::{AssertUnwindSafe, catch_unwind};

use saga_core::store::{StoreError, StoreErrorKind};
use tokio::sync::oneshot;

use crate::error::{Failure, GroupError, panic_text, store_error};
use crate::writer::session::Session;

/// One call, which shares its commit with others.
///
/// A job may run several times, each time from its start in a new transaction. Only the answer of the committed run
/// counts; the job keeps its answer until then.
pub(crate) trait Job: Send {
    /// Works in the open transaction.
    fn run(&mut self, session: &mut Session) -> JobFlow;

    /// Answers the caller.
    fn complete(self: Box<Self>, completion: Completion<'_>);
}

pub(crate) type BoxedJob = Box<dyn Job>;

/// How the group continues after a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobFlow {
    /// With the next job. This job has an answer, success or error, and left the transaction in order.
    Continue,
    /// The transaction may hold half of the job. It is rolled back, and the job runs again, alone.
    RetryAlone,
    /// The transaction is rolled back, and the job has failed for good.
    Fail,
}

/// The end of a job.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Completion<'a> {
    /// The answer of its last run is valid.
    Answered,
    /// The group failed.
    Failed(&'a GroupError),
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A job that is one function. The function checks before it writes.
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

    fn complete(self: Box<Self>, completion: Completion<'_>) {
        let Self { operation, function, answer, reply } = *self;
        drop_callers_value(function);
        let answer = match completion {
            Completion::Failed(error) => Err(error.error(operation)),
            Completion::Answered => answer.unwrap_or_else(|| Err(unanswered(operation))),
        };
        // The caller may have dropped its future.
        _ = reply.send(answer);
    }
}

/// Drops the caller's values before the caller is answered, so that the store keeps nothing of them. They may be the
/// user's, and their drop may panic.
pub(crate) fn drop_callers_value<T>(given: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(given))) {
        tracing::error!(panic = panic_text(&*panic), "value panicked on drop");
    }
}

pub(crate) fn panicked(operation: &'static str, panic: &(dyn std::any::Any + Send)) -> StoreError {
    StoreError::new(StoreErrorKind::Other, operation, format!("panicked on the writer thread: {}", panic_text(panic)))
}

/// A job is answered only after a run; this error reports a bug in the writer.
pub(crate) fn unanswered(operation: &'static str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Other,
        operation,
        "the writer answered a call that it had not run, which is a bug of the store",
    )
}
