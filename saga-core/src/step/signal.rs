use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;

/// Tells the steps that hold it that their work is no longer wanted.
///
/// It is cooperative: nothing stops a step that does not look.
#[derive(Debug, Clone, Default)]
pub struct CancelSignal {
    shared: Arc<Shared>,
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

    /// Gives the signal, for good.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Release);
        self.shared.changed.notify_waiters();
    }

    /// Whether the signal was given.
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Acquire)
    }

    /// Waits until the signal is given.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped and called again at any time.
    pub async fn cancelled(&self) {
        loop {
            // The waiter is registered before the flag is read, so a signal between the two is not missed.
            let changed = self.shared.changed.notified();
            if self.is_cancelled() {
                return;
            }
            changed.await;
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
}
