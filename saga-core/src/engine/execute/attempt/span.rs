//! The span of a call, which what the user's code logs inside carries.

use std::future::poll_fn;

use tracing::Span;

use crate::engine::instance::WorkItem;
use crate::env::BoxFuture;
use crate::log;
use crate::store::Store;

/// The span of one call: what the user's code logs inside carries the saga, the step, the attempt and the tenant.
pub(crate) fn span_of<S: Store>(command: &WorkItem<S>) -> Span {
    made(|| {
        let (tenant, saga) = (command.saga.tenant.as_str(), &command.saga.key);
        let (step, attempt) = (command.step_id(), command.attempt_number());
        tracing::info_span!("step", tenant, %saga, %step, attempt)
    })
}

/// The span of one call of a batch step: it is of many sagas.
pub(crate) fn span_of_batch<S: Store>(first: &WorkItem<S>, count: usize) -> Span {
    made(|| {
        let (definition, step) = (&first.saga.definition.id, first.step().name);
        tracing::info_span!("batch step", %definition, step, count)
    })
}

/// Polls a future in a span. Without a subscriber that wants the span, this is the future itself.
pub(crate) fn in_span<'a, T: Send + 'a>(mut future: BoxFuture<'a, T>, span: Span) -> BoxFuture<'a, T> {
    if span.is_disabled() {
        return future;
    }
    Box::pin(poll_fn(move |cx| {
        let _entered = Entered::new(&span);
        future.as_mut().poll(cx)
    }))
}

/// A span that was entered, until this is dropped.
struct Entered<'a>(&'a Span);

impl<'a> Entered<'a> {
    fn new(span: &'a Span) -> Self {
        log::shielded(|| _ = span.with_subscriber(|(id, subscriber)| subscriber.enter(id)));
        Self(span)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        log::shielded(|| _ = self.0.with_subscriber(|(id, subscriber)| subscriber.exit(id)));
    }
}

/// Makes a span. If the subscriber panics, there is none.
fn made(make: impl FnOnce() -> Span) -> Span {
    let mut span = Span::none();
    log::shielded(|| span = make());
    span
}
