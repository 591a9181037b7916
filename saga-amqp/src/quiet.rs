//! Keeps the contents of messages out of the log, and a panicking subscriber away from the connection.
//!
//! The client library warns of each message that a broker returns, and prints all of it. The publisher reports a missing queue
//! itself, once and with advice. The library logs on the thread that reads from the broker: if a subscriber panicked there, that
//! thread would end, and the connection would still look open.

use std::cell::RefCell;
use std::num::NonZeroU64;

use tracing::dispatcher::{self, DefaultGuard, Dispatch};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use saga_core::__private::log::shielded;

/// Where the library prints returned messages.
const RETURNED: &str = "lapin::returned_messages";

thread_local! {
    /// For as long as the thread lives.
    static GUARD: RefCell<Option<DefaultGuard>> = const { RefCell::new(None) };
}

/// Who listens to the caller's log, without what this module keeps out.
pub(crate) fn listener() -> Dispatch {
    Dispatch::new(Quiet(dispatcher::get_default(Dispatch::clone)))
}

/// Gives the calling thread this listener to the end of its life.
pub(crate) fn listen_here(listener: &Dispatch) {
    GUARD.with_borrow_mut(|guard| *guard = Some(dispatcher::set_default(listener)));
}

/// What a span is that its subscriber could not make. No subscriber counts so far.
const NO_SPAN: Id = Id::from_non_zero_u64(NonZeroU64::MAX);

/// Hands on all but what the library says of returned messages, and no panic back.
struct Quiet(Dispatch);

fn is_kept_out(metadata: &Metadata<'_>) -> bool {
    metadata.target() == RETURNED
}

impl Subscriber for Quiet {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_kept_out(metadata) {
            return Interest::never();
        }
        shielded(|| self.0.register_callsite(metadata)).unwrap_or_else(Interest::sometimes)
    }

    /// The most verbose of all listeners counts, and the one behind this one is among them.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::OFF)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        !is_kept_out(metadata) && shielded(|| self.0.enabled(metadata)).unwrap_or_default()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        shielded(|| self.0.new_span(span)).unwrap_or(NO_SPAN)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        shielded(|| self.0.record(span, values)).unwrap_or_default();
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        shielded(|| self.0.record_follows_from(span, follows)).unwrap_or_default();
    }

    fn event(&self, event: &Event<'_>) {
        if !is_kept_out(event.metadata()) {
            shielded(|| self.0.event(event)).unwrap_or_default();
        }
    }

    fn enter(&self, span: &Id) {
        shielded(|| self.0.enter(span)).unwrap_or_default();
    }

    fn exit(&self, span: &Id) {
        shielded(|| self.0.exit(span)).unwrap_or_default();
    }

    fn clone_span(&self, id: &Id) -> Id {
        shielded(|| self.0.clone_span(id)).unwrap_or_else(|| id.clone())
    }

    fn try_close(&self, id: Id) -> bool {
        shielded(|| self.0.try_close(id)).unwrap_or_default()
    }
}
