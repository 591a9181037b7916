use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    patience::{is_away, is_full},
    print::say,
    sentence::sentence,
};

/// How long between two attempts to start an order.
const TRY_EVERY: Duration = Duration::from_millis(200);

/// What the starts of orders know together of a database that is away: it is said once, and waited for.
#[derive(Debug)]
pub(super) struct Outage {
    patience: Duration,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Since when nothing works.
    since: Option<Instant>,
    /// Whether it was away since the last call of `take_seen`.
    was_seen: bool,
}

impl Outage {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, known: Mutex::default() }
    }

    /// Waits a moment, if the same may work then.
    pub(super) async fn wait_out(&self, error: anyhow::Error) -> anyhow::Result<()> {
        if !is_away(&error) {
            return Err(error);
        }
        let since = self.begins(&error);
        // A full disk is waited for until a person makes room, however long that takes.
        if since.elapsed() >= self.patience && !is_full(&error) {
            return Err(error.context(format!("the database was away for {:?}", self.patience)));
        }
        tokio::time::sleep(TRY_EVERY).await;
        Ok(())
    }

    /// Something worked.
    pub(super) fn is_over(&self) {
        let since = self.lock().since.take();
        if let Some(since) = since {
            say(format_args!("the database works again, after {:.1} s", since.elapsed().as_secs_f64()));
        }
    }

    /// The runtime has seen that it was away.
    pub(super) fn was_seen(&self) {
        self.lock().was_seen = true;
    }

    /// Whether it was away since this was last asked.
    pub(super) fn take_seen(&self) -> bool {
        std::mem::take(&mut self.lock().was_seen)
    }

    fn begins(&self, error: &anyhow::Error) -> Instant {
        let mut known = self.lock();
        known.was_seen = true;
        if let Some(since) = known.since {
            return since;
        }
        let since = Instant::now();
        known.since = Some(since);
        drop(known);
        let limit =
            if is_full(error) { "until it has room".to_owned() } else { format!("for up to {:?}", self.patience) };
        say(format_args!("no order can be started, which is tried {limit}: {}", sentence(error)));
        since
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use saga_core::store::{StoreError, StoreErrorKind};

    use super::*;

    fn error(kind: StoreErrorKind) -> anyhow::Error {
        StoreError::new(kind, "start", "it failed").into()
    }

    #[tokio::test]
    async fn a_database_that_is_away_is_waited_for_up_to_the_limit() {
        let outage = Outage::new(Duration::from_hours(1));
        outage.wait_out(error(StoreErrorKind::UnknownCommit)).await.expect("it may come back");
        assert!(outage.take_seen() && !outage.take_seen());
        let impatient = Outage::new(Duration::ZERO);
        let given_up = impatient.wait_out(error(StoreErrorKind::Unavailable)).await.expect_err("it was away too long");
        assert!(given_up.to_string().contains("was away for"), "{given_up}");
    }

    #[tokio::test]
    async fn a_full_disk_is_waited_for_as_long_as_it_takes() {
        Outage::new(Duration::ZERO).wait_out(error(StoreErrorKind::Full)).await.expect("a person makes room");
    }

    #[tokio::test]
    async fn what_will_never_work_is_not_tried_again() {
        let outage = Outage::new(Duration::from_hours(1));
        outage.wait_out(error(StoreErrorKind::NotAStore)).await.expect_err("it stays wrong");
        assert!(!outage.take_seen());
    }
}
