use std::future::poll_fn;
use std::pin::pin;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::task::Poll;

use tokio::sync::Notify;

/// Tells the steps that hold it that their work is no longer wanted.
///
/// It is cooperative: nothing stops a step that does not look.
#[derive(Debug, Clone, Default)]
pub struct CancelSignal {
    shared: Arc<Shared>,
    /// A signal that counts as this one, too.
    above: Option<Arc<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    changed: Notify,
}

impl CancelSignal {
    /// A signal that has not been given.
    pub fn new() -> Self {
        Self::default()
    }

    /// A signal that is given with this one, or alone.
    pub(crate) fn child(&self) -> Self {
        Self { shared: Arc::default(), above: Some(Arc::clone(&self.shared)) }
    }

    /// Gives the signal, for good.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Release);
        self.shared.changed.notify_waiters();
    }

    /// Whether the signal was given.
    pub fn is_cancelled(&self) -> bool {
        let is_given = |shared: &Arc<Shared>| shared.cancelled.load(Ordering::Acquire);
        is_given(&self.shared) || self.above.as_ref().is_some_and(is_given)
    }

    /// Waits until the signal is given.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped and called again at any time.
    pub async fn cancelled(&self) {
        loop {
            // The waiters are registered before the flags are read, so a signal between the two is not missed.
            let mut changed = pin!(self.shared.changed.notified());
            let mut changed_above = pin!(self.above.as_ref().map(|above| above.changed.notified()));
            if self.is_cancelled() {
                return;
            }
            poll_fn(|cx| {
                let above = changed_above.as_mut().as_pin_mut().map(|changed| changed.poll(cx));
                if above.is_some_and(|polled| polled.is_ready()) { Poll::Ready(()) } else { changed.as_mut().poll(cx) }
            })
            .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn everyone_who_waits_is_told() {
        let signal = CancelSignal::new();
        let other = signal.clone();
        let mut context = Context::from_waker(Waker::noop());
        let mut first = pin!(signal.cancelled());
        let mut second = pin!(other.cancelled());
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
        signal.cancel();
        assert!(first.poll(&mut context).is_ready());
        assert!(second.poll(&mut context).is_ready());
        assert!(pin!(other.cancelled()).poll(&mut context).is_ready());
    }

    #[test]
    fn a_child_is_given_with_its_parent_or_alone() {
        let parent = CancelSignal::new();
        let (one, other) = (parent.child(), parent.child());
        let mut context = Context::from_waker(Waker::noop());
        let mut waits = pin!(other.cancelled());
        one.cancel();
        assert!(one.is_cancelled() && !other.is_cancelled() && !parent.is_cancelled());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        parent.cancel();
        assert!(waits.poll(&mut context).is_ready() && other.is_cancelled());
    }
}
