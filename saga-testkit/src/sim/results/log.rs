use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::sim::executor::Control;

/// Keeps what the engine says in its tracing events, with the virtual time, so that a replay can show it beside the
/// ledger.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    shared: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    control: Option<Control>,
    lines: Vec<(u64, String)>,
}

impl Log {
    /// Takes the time from here on from this executor.
    pub(crate) fn set_clock(&self, control: Control) {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).control = Some(control);
    }

    /// The lines, each with its time in microseconds.
    pub(crate) fn take(&self) -> Vec<(u64, String)> {
        std::mem::take(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner).lines)
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG && metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{}", event.metadata().level()));
        event.record(&mut line);
        let mut inner = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let at = inner.control.as_ref().map_or(0, |control| control.now().as_micros() as u64);
        inner.lines.push((at, line.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing into a string never fails.
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
