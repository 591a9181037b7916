//! Slots in memory and permits to run; both are given back when they are dropped.

use std::sync::Arc;
use std::time::Duration;

use super::bulkheads::Bulkheads;
use super::concurrency_key::ConcurrencyKey;

/// A place in the memory of this process, and the line of the command that has it, once it may run. The next command of the
/// saga inherits both where it has the same seat.
#[derive(Debug)]
pub(crate) struct QueueSlot {
    bulkheads: Arc<Bulkheads>,
    seat: ConcurrencyKey,
    line: Option<ConcurrencyPermit>,
}

impl QueueSlot {
    pub(crate) fn new(bulkheads: &Arc<Bulkheads>, seat: ConcurrencyKey, line: Option<ConcurrencyPermit>) -> Self {
        Self { bulkheads: Arc::clone(bulkheads), seat, line }
    }

    pub(crate) fn seat(&self) -> ConcurrencyKey {
        self.seat
    }

    pub(crate) fn has_line(&self) -> bool {
        self.line.is_some()
    }

    /// Gives the command in this place its line.
    pub(crate) fn set_line(&mut self, line: Option<ConcurrencyPermit>) {
        self.line = line;
    }

    pub(crate) fn take_line(&mut self) -> Option<ConcurrencyPermit> {
        self.line.take()
    }

    /// Lets the command run beside the lines of its pool, in a place that others of the pool do not wait for: only the limits
    /// of its step and of its saga count it as what it is.
    pub(crate) fn leave_pool(&mut self) {
        if let Some(line) = &mut self.line {
            line.leave_pool();
        }
        self.seat = self.bulkheads.move_beside(self.seat);
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.line = None;
        self.bulkheads.leave_place(self.seat);
    }
}

/// Whether a command may run now.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It waits until a line or a limit leaves room for it.
    Waits,
    /// It runs, with the line that it holds meanwhile, if it needs one of its own.
    Runs(Option<ConcurrencyPermit>),
}

impl Admission {
    /// It runs if there is a line for it.
    pub(crate) fn on(line: Option<ConcurrencyPermit>) -> Self {
        line.map_or(Self::Waits, |line| Self::Runs(Some(line)))
    }
}

/// The right of a command to run now.
#[derive(Debug)]
pub(crate) struct ConcurrencyPermit {
    bulkheads: Arc<Bulkheads>,
    seat: ConcurrencyKey,
    /// When it began to run, as long as it holds one of the pool's lines.
    began: Option<Duration>,
}

impl ConcurrencyPermit {
    pub(crate) fn new(bulkheads: &Arc<Bulkheads>, seat: ConcurrencyKey, began: Option<Duration>) -> Self {
        Self { bulkheads: Arc::clone(bulkheads), seat, began }
    }

    fn leave_pool(&mut self) {
        if self.began.take().is_some() {
            self.bulkheads.leave_pool(self.seat);
        }
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.bulkheads.leave_line(self.seat, self.began);
    }
}
