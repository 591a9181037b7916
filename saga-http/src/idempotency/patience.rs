//! How long a client waits for a response that is not ready.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

/// The first pause between two looks at a key that is in flight. Each look is a call of the store, so the pauses grow.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The patience of one client: it waits until a time, if it finds a place among those that wait.
pub(super) struct Patience {
    until: Option<Instant>,
    pause: Duration,
    places: Arc<Semaphore>,
    place: Option<OwnedSemaphorePermit>,
}

impl Patience {
    /// A client that waits for so long, or not at all.
    pub(super) fn new(wait: Option<Duration>, places: &Arc<Semaphore>) -> Self {
        let until = wait.map(|wait| Instant::now() + wait);
        Self { until, pause: PAUSE_MIN, places: Arc::clone(places), place: None }
    }

    /// Pauses before the next look. The last pause ends when the client's time ends. Answers whether it paused.
    pub(super) async fn pause(&mut self) -> bool {
        let Some(until) = self.wait_until() else { return false };
        sleep_until(until.min(Instant::now() + self.pause)).await;
        self.pause = (self.pause * 3 / 2).min(PAUSE_MAX);
        true
    }

    /// Until when the client waits; nothing if it waits no more, or if too many clients wait already.
    pub(super) fn wait_until(&mut self) -> Option<Instant> {
        let until = self.until.filter(|until| Instant::now() < *until)?;
        if self.place.is_none() {
            self.place = Some(Arc::clone(&self.places).try_acquire_owned().ok()?);
        }
        Some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_looks_more_and_more_seldom_and_once_more_at_the_end() {
        let places = Arc::new(Semaphore::new(1));
        let mut patience = Patience::new(Some(Duration::from_mins(1)), &places);
        let began = Instant::now();
        let mut looks = 0;
        while patience.pause().await {
            looks += 1;
        }
        assert!(looks < 75, "{looks} looks");
        assert_eq!(began.elapsed(), Duration::from_mins(1));
        assert!(!Patience::new(None, &places).pause().await);
        assert!(!Patience::new(Some(Duration::ZERO), &places).pause().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_finds_no_place_does_not_wait() {
        let places = Arc::new(Semaphore::new(1));
        let wait = Some(Duration::from_mins(1));
        let mut first = Patience::new(wait, &places);
        let mut second = Patience::new(wait, &places);
        assert!(first.pause().await && !second.pause().await);
        drop(first);
        assert!(second.pause().await);
    }
}
