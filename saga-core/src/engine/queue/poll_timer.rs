//! When the poller asks the store for work next.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::env::{Environment, Pause};

/// The shortest time between two polls for work that becomes due by itself. A poll costs as much as several steps, so work that
/// becomes due at about the same time is claimed together.
const PAUSE: Duration = Duration::from_millis(50);

/// When to poll next: the earliest time that was announced.
#[derive(Debug)]
pub(crate) struct PollTimer {
    planned: Mutex<Planned>,
    earlier: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    at: Duration,
    /// When work becomes due, as far as it was announced. The poll may be a little later than that.
    due: Option<Duration>,
    /// Whether the last poll found work.
    found: bool,
    polled_at: Option<Duration>,
}

impl PollTimer {
    pub(crate) fn new() -> Self {
        let planned = Planned { at: Duration::ZERO, due: None, found: false, polled_at: None };
        Self { planned: Mutex::new(planned), earlier: Notify::new() }
    }

    /// Work is due at this moment.
    pub(crate) fn announce(&self, at: Duration) {
        self.plan(at, |_| at);
    }

    /// Work becomes due at this moment; a poll shortly after it will do.
    pub(crate) fn announce_later(&self, at: Duration) {
        self.plan(at, |polled_at| polled_at.map_or(at, |polled_at| at.max(polled_at.saturating_add(PAUSE))));
    }

    fn plan(&self, due: Duration, at: impl FnOnce(Option<Duration>) -> Duration) {
        let mut planned = self.lock();
        let at = at(planned.polled_at);
        let is_sooner = planned.due.is_none_or(|known| due < known);
        if at >= planned.at && !is_sooner {
            return;
        }
        planned.at = planned.at.min(at);
        if is_sooner {
            planned.due = Some(due);
        }
        drop(planned);
        self.earlier.notify_one();
    }

    /// Waits until the next poll is due, or until an earlier one that is announced meanwhile.
    pub(crate) async fn wait(&self, env: &dyn Environment) {
        loop {
            let Planned { at, due, found, .. } = *self.lock();
            let now = env.now();
            if at <= now {
                return;
            }
            let due_in = due.map(|due| due.saturating_sub(now));
            tokio::select! {
                biased;
                () = self.earlier.notified() => {}
                _ = env.pause(Pause { interval: at.saturating_sub(now), due_in, found }) => return,
            }
        }
    }

    /// Plans the next poll for `next`, just before a poll begins, so that an announcement during that poll is not lost.
    pub(crate) fn begin(&self, now: Duration, next: Duration) {
        *self.lock() = Planned { at: next, due: None, found: false, polled_at: Some(now) };
    }

    /// Takes note of how many rows the last poll found.
    pub(crate) fn has_polled(&self, found: usize) {
        self.lock().found = found > 0;
    }

    /// The last poll failed, so work may be due.
    pub(crate) fn has_failed(&self) {
        let mut planned = self.lock();
        planned.due = planned.due.into_iter().chain([planned.at]).min();
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
