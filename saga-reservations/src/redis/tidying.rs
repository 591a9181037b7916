//! What the sweeper does.

use std::time::Duration;

use super::holds::InEpoch;
use super::reservations::RedisReservations;
use super::scripts::{LOOK, PRUNE, SWEEP};
use crate::ReservationsError;
use crate::book::ReservationKey;
use crate::contract::ReservationsStore as _;

const SWEEPING: &str = "end the holds that are over";
const PRUNING: &str = "forget old holds";
const REACHING: &str = "reach Redis";

/// How old a mark is when the sweeper takes it for left behind. It may be wrong: the same confirmation has one effect.
const MARK_AGE: Duration = Duration::from_secs(5);

/// How long Redis remembers a hold that ended, so that it can be confirmed late, and its key is not used again.
const REMEMBERED: Duration = Duration::from_hours(24);

/// How long Redis remembers the resource of a unique intent that has no hold. No read of SQL takes so long.
const IDLE: Duration = Duration::from_hours(1);

impl RedisReservations {
    pub(super) async fn sweep(&self, limit: usize) -> Result<usize, ReservationsError> {
        let arguments = vec![limit.to_string(), micros(MARK_AGE)];
        let InEpoch { epoch, answer } = self.holds.words(SWEEPING, &SWEEP, arguments).await?;
        let mut words = answer.into_iter().skip(1);
        let ended = words.next().and_then(|count| count.parse().ok()).unwrap_or(0);
        let is_loaded = words.next().is_some_and(|word| word == "1");
        for key in words {
            self.settle_mark(&ReservationKey::new(key)?).await?;
        }
        if !is_loaded {
            self.load_keys(epoch).await?;
        }
        Ok(usize::max(ended, self.sql.expire_overdue(limit).await?))
    }

    /// Asks SQL about a confirmation that may have been left behind.
    async fn settle_mark(&self, key: &ReservationKey) -> Result<(), ReservationsError> {
        let arguments = vec![key.to_string(), String::new()];
        let reply = self.holds.call(SWEEPING, &LOOK, Some(key), arguments).await?.answer;
        match reply.hold.filter(|hold| hold.is_confirming) {
            Some(marked) => self.finish_confirmation(&marked.reservation).await,
            None => Ok(()),
        }
    }

    pub(super) async fn forget(&self, keep: Duration, limit: usize) -> Result<usize, ReservationsError> {
        let mut forgotten = 0;
        // Confirmed holds and idle resources do not count as forgotten, and must not be left to the next round: each confirmation
        // leaves one behind.
        while forgotten < limit {
            let asked = limit - forgotten;
            let arguments = vec![micros(keep.min(REMEMBERED)), asked.to_string(), micros(IDLE)];
            let words = self.holds.words(PRUNING, &PRUNE, arguments).await?.answer;
            let mut counts = words.iter().skip(1).map(|count| count.parse().unwrap_or(0));
            forgotten += counts.next().unwrap_or(0);
            if counts.all(|looked_at: usize| looked_at < asked) {
                break;
            }
        }
        Ok(usize::max(forgotten, self.sql.prune(keep, limit).await?))
    }

    pub(super) async fn reach_redis(&self) -> Result<(), ReservationsError> {
        let arguments = vec![String::new(), String::new()];
        self.holds.call(REACHING, &LOOK, None, arguments).await.map(drop)
    }
}

fn micros(duration: Duration) -> String {
    duration.as_micros().to_string()
}
