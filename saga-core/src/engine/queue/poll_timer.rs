//! When the poller looks for work next.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::env::Environment;

/// How long after a look the next one is that nothing but time leads to. A look costs as much as several steps, and so does
/// the transaction of a lone retry: those that fall due at about the same time are taken together.
const PAUSE: Duration = Duration::from_millis(50);

/// When to poll for work next: the earliest time that was announced.
#[derive(Debug)]
pub(crate) struct PollTimer {
    planned: Mutex<Planned>,
    earlier: Notify,
}

#[derive(Debug)]
struct Planned {
    at: Duration,
    looked_at: Option<Duration>,
}

impl PollTimer {
    pub(crate) fn new() -> Self {
        Self { planned: Mutex::new(Planned { at: Duration::ZERO, looked_at: None }), earlier: Notify::new() }
    }

    /// There is something to do at that moment.
    pub(crate) fn announce(&self, at: Duration) {
        self.plan(|_| at);
    }

    /// Something falls due at that moment, and others may at about the same time.
    pub(crate) fn announce_later(&self, at: Duration) {
        self.plan(|looked_at| looked_at.map_or(at, |looked_at| at.max(looked_at.saturating_add(PAUSE))));
    }

    fn plan(&self, at: impl FnOnce(Option<Duration>) -> Duration) {
        let mut planned = self.lock();
        let at = at(planned.looked_at);
        if at < planned.at {
            planned.at = at;
            drop(planned);
            self.earlier.notify_one();
        }
    }

    /// Plans the next look, and waits for it or for an earlier one that is announced meanwhile.
    ///
    /// What is announced between a look and its plan would be lost, so the plan is made before the look: see
    /// [`Due::begin`].
    pub(crate) async fn wait(&self, env: &dyn Environment) {
        loop {
            let at = self.lock().at;
            let now = env.now();
            if at <= now {
                return;
            }
            tokio::select! {
                biased;
                () = self.earlier.notified() => {}
                () = env.sleep(at.saturating_sub(now)) => {}
            }
        }
    }

    /// Before a look: from now on an announcement is for the next one, which is planned for `next` at the latest.
    pub(crate) fn begin(&self, now: Duration, next: Duration) {
        *self.lock() = Planned { at: next, looked_at: Some(now) };
    }

    fn lock(&self) -> MutexGuard<'_, Planned> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_falls_due_soon_after_a_look_is_looked_for_together() {
        let due = PollTimer::new();
        due.begin(SECOND, 2 * SECOND);
        due.announce_later(SECOND + PAUSE / 5);
        assert_eq!(due.lock().at, SECOND + PAUSE, "not at once");
        due.announce_later(SECOND + PAUSE / 2);
        assert_eq!(due.lock().at, SECOND + PAUSE, "together with the other");
        due.announce(SECOND);
        assert_eq!(due.lock().at, SECOND, "what is there is not waited for");

        due.begin(SECOND, 9 * SECOND);
        due.announce_later(3 * SECOND);
        assert_eq!(due.lock().at, 3 * SECOND, "what falls due long after a look is found in time");
    }
}
