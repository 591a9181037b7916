//! Who begins an epoch.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

/// How long a caller waits for another one of this process that begins an epoch. Then it begins one itself.
const TURN_MAX: Duration = Duration::from_secs(10);

/// How long another process has for beginning the epoch that it raised.
const GRACE: Duration = Duration::from_millis(20);

/// How an epoch is missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// Redis has none that is known, or one of another server.
    Stale,
    /// Redis has this one, and the store a later one: another process raised it, and has not begun it yet.
    Behind(u64),
}

/// Lets one caller at a time begin an epoch: two that begin one each take the epoch of the other one for outdated, and might
/// do so for ever. The callers of one process that miss an epoch begin one together. An epoch of another process gets time
/// before a new one replaces it.
#[derive(Debug, Default)]
pub struct EpochTurn {
    turn: Mutex<()>,
    /// Raised when what Redis said before is out of date.
    view: AtomicU64,
    /// The epoch that was behind when another process got its time.
    behind: AtomicU64,
}

impl EpochTurn {
    /// Read it before Redis is asked, and hand it to [`begin`](Self::begin) if the answer misses an epoch.
    pub fn view(&self) -> u64 {
        self.view.load(Ordering::Acquire)
    }

    /// Begins an epoch, or waits for the one that another caller or another process begins. Ask Redis again afterwards.
    ///
    /// # Errors
    /// Those of `begin`.
    ///
    /// # Cancel safety
    /// That of `begin`.
    pub async fn begin<E>(
        &self,
        view: u64,
        missed: Missed,
        begin: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        // Without its turn it begins one too: that is wasteful, and not wrong.
        let _turn = timeout(TURN_MAX, self.turn.lock()).await;
        if self.view() != view {
            return Ok(());
        }
        match missed {
            Missed::Behind(epoch) if self.behind.swap(epoch, Ordering::AcqRel) != epoch => sleep(GRACE).await,
            Missed::Behind(_) | Missed::Stale => begin.await?,
        }
        self.view.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    async fn begins(turn: &EpochTurn, view: u64, missed: Missed) -> bool {
        let mut has_begun = false;
        let begin = async {
            has_begun = true;
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(())
        };
        turn.begin(view, missed, begin).await.unwrap();
        has_begun
    }

    #[tokio::test]
    async fn callers_that_miss_an_epoch_together_begin_one() {
        let turn = EpochTurn::default();
        let view = turn.view();
        let miss = || begins(&turn, view, Missed::Stale);
        let (one, two, three) = tokio::join!(miss(), miss(), miss());
        assert_eq!([one, two, three].iter().filter(|begins| **begins).count(), 1);
        assert!(begins(&turn, turn.view(), Missed::Stale).await, "it was missed again");
    }

    #[tokio::test]
    async fn a_failure_leaves_the_turn_to_the_next_caller() {
        let turn = EpochTurn::default();
        let view = turn.view();
        assert_eq!(turn.begin(view, Missed::Stale, async { Err("unreachable") }).await, Err("unreachable"));
        assert!(begins(&turn, view, Missed::Stale).await);
    }

    #[tokio::test]
    async fn an_epoch_of_another_process_gets_time_once() {
        let turn = EpochTurn::default();
        let view = turn.view();
        assert!(!begins(&turn, view, Missed::Behind(5)).await);
        assert!(
            !begins(&turn, view, Missed::Behind(5)).await,
            "this caller asked before the other process got its time"
        );
        assert!(begins(&turn, turn.view(), Missed::Behind(5)).await, "the other process did not begin it");
        assert!(!begins(&turn, turn.view(), Missed::Behind(6)).await);
    }
}
