//! What the clock knows to be going on.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use saga_core::env::ActivityGuard;

use super::clock::Clock;
use super::kinds::{UnitId, UnitKind};

thread_local! {
    /// What is polled on this thread.
    static CURRENT: RefCell<Option<(Arc<Clock>, UnitId)>> = const { RefCell::new(None) };
}

/// A unit that exists until this is dropped.
pub(super) struct Unit {
    clock: Arc<Clock>,
    id: UnitId,
}

impl Unit {
    pub(super) fn new(clock: &Arc<Clock>, kind: UnitKind) -> Self {
        Self { clock: Arc::clone(clock), id: clock.begin(kind, current(clock)) }
    }
}

/// The unit of this clock that is polled on this thread.
pub(super) fn current(clock: &Arc<Clock>) -> Option<UnitId> {
    CURRENT.with_borrow(|current| current.as_ref().filter(|(of, _)| Arc::ptr_eq(of, clock)).map(|(_, id)| *id))
}

impl ActivityGuard for Unit {
    fn poll(&self, cx: &mut Context<'_>, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) -> Poll<()> {
        self.clock.begin_poll(self.id);
        let outer = CURRENT.replace(Some((Arc::clone(&self.clock), self.id)));
        let mut polling = Polling { unit: self, outer, is_over: true };
        let waker = UnitWaker { clock: Arc::clone(&self.clock), id: self.id, inner: cx.waker().clone() };
        let polled = poll(&mut Context::from_waker(&Waker::from(Arc::new(waker))));
        polling.is_over = polled.is_ready();
        polled
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        self.clock.end(self.id);
    }
}

/// A unit is being polled until this is dropped, also by a panic.
struct Polling<'a> {
    unit: &'a Unit,
    outer: Option<(Arc<Clock>, UnitId)>,
    /// Whether it was the last poll: no time passes on account of what has ended.
    is_over: bool,
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        CURRENT.replace(self.outer.take());
        if self.is_over {
            self.unit.clock.end(self.unit.id);
        } else {
            self.unit.clock.end_poll(self.unit.id);
        }
    }
}

/// Tells the clock that a unit is ready to run, before it wakes it.
struct UnitWaker {
    clock: Arc<Clock>,
    id: UnitId,
    inner: Waker,
}

impl Wake for UnitWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.clock.woken(self.id);
        self.inner.wake_by_ref();
    }
}
