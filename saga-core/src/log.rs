//! Log events that cannot panic, and have fixed names: docs/log-events.md lists them.
//!
//! Some subscribers panic when their output is gone, such as a closed standard error. That must not end a task of the runtime.

use crate::env::BoxFuture;

/// Emits an event by one of the macros of `tracing`.
macro_rules! emit {
    ($level:ident, $($event:tt)*) => {
        $crate::log::shielded(|| ::tracing::$level!($($event)*))
    };
}

macro_rules! debug_event {
    ($($event:tt)*) => { $crate::log::emit!(debug, $($event)*) };
}

macro_rules! info_event {
    ($($event:tt)*) => { $crate::log::emit!(info, $($event)*) };
}

macro_rules! warn_event {
    ($($event:tt)*) => { $crate::log::emit!(warn, $($event)*) };
}

macro_rules! error_event {
    ($($event:tt)*) => { $crate::log::emit!(error, $($event)*) };
}

pub(crate) use {debug_event as debug, emit, error_event as error, info_event as info, warn_event as warn};

/// Runs a call of a subscriber. Only the panic hook can report its panic.
pub(crate) fn shielded(call: impl FnOnce()) {
    if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)) {
        // The payload may panic again when it is dropped.
        std::mem::forget(panic);
    }
}

/// Makes a span. If the subscriber panics, there is none.
pub(crate) fn span(make: impl FnOnce() -> tracing::Span) -> tracing::Span {
    let mut span = tracing::Span::none();
    shielded(|| span = make());
    span
}

/// Polls a future in a span. Without a subscriber that wants the span, this is the future itself.
pub(crate) fn in_span<'a, T: Send + 'a>(mut future: BoxFuture<'a, T>, span: tracing::Span) -> BoxFuture<'a, T> {
    if span.is_disabled() {
        return future;
    }
    Box::pin(std::future::poll_fn(move |cx| {
        let _entered = Entered::new(&span);
        future.as_mut().poll(cx)
    }))
}

/// A span that was entered, until this is dropped.
struct Entered<'a>(&'a tracing::Span);

impl<'a> Entered<'a> {
    fn new(span: &'a tracing::Span) -> Self {
        shielded(|| _ = span.with_subscriber(|(id, subscriber)| subscriber.enter(id)));
        Self(span)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        shielded(|| _ = self.0.with_subscriber(|(id, subscriber)| subscriber.exit(id)));
    }
}

/// Whether a subscriber wants events of the level `DEBUG`.
pub(crate) fn is_verbose() -> bool {
    let mut is_verbose = false;
    shielded(|| is_verbose = tracing::enabled!(tracing::Level::DEBUG));
    is_verbose
}
