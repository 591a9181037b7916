use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::clock::Clock;
use super::kinds::{SleepId, SleepKind, Woken};
use super::unit::current;

/// A sleep in virtual time; answers whether all of it has passed.
pub(super) struct VirtualSleep {
    clock: Arc<Clock>,
    until: Duration,
    kind: SleepKind,
    id: Option<SleepId>,
}

impl VirtualSleep {
    /// A sleep from now on.
    pub(super) fn new(clock: &Arc<Clock>, duration: Duration, kind: SleepKind) -> Self {
        let until = clock.now().saturating_add(duration);
        Self { clock: Arc::clone(clock), until, kind, id: None }
    }

    /// The clock learns of it when it is polled for the first time, by which it knows who awaits it.
    fn begin(&mut self) -> SleepId {
        let owner = current(&self.clock);
        assert!(
            self.kind != SleepKind::OfStep || !self.clock.has_store_waiting(owner),
            "VirtualTime::sleep was awaited in a transaction of the store, which can do nothing else meanwhile; await it in an \
             external step"
        );
        *self.id.insert(self.clock.add_sleep(self.until, self.kind, owner))
    }
}

impl Future for VirtualSleep {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let id = if let Some(id) = self.id { id } else { self.begin() };
        match self.clock.poll_sleep(id, cx.waker()) {
            Woken::NotYet => Poll::Pending,
            woken => {
                self.id = None;
                Poll::Ready(woken == Woken::AtEnd)
            }
        }
    }
}

impl Drop for VirtualSleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.clock.drop_sleep(id);
        }
    }
}
