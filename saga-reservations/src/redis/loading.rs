//! Redis learns which keys SQL has, so that a request for another one needs no read.
//!
//! All that SQL had when the epoch began is loaded in that epoch. What SQL gets in it, Redis has before: a confirmation needs a
//! hold, and a release is noted first. So once all is loaded, a key that Redis does not know is not in SQL.

use super::load_progress::LoadProgress;
use super::points::Point;
use super::reservations::RedisReservations;
use super::scripts::LOAD;
use crate::ReservationsError;

const LOADING: &str = "load the keys of the database";

/// The most keys of one script: Redis does nothing else meanwhile.
const KEYS_MAX: usize = 1_000;
/// The most scripts of one sweep.
const SCRIPTS_MAX: usize = 64;

impl RedisReservations {
    /// Loads some of the keys that SQL has. Another call goes on where this one ends.
    pub(super) async fn load_keys(&self, epoch: u64) -> Result<(), ReservationsError> {
        // Another task of this process may be loading.
        let Ok(mut progress) = self.load_progress.try_lock() else { return Ok(()) };
        progress.go_on_in(epoch);
        for _ in 0..SCRIPTS_MAX {
            let keys = self.sql.keys_after(&progress.after, KEYS_MAX).await?;
            self.points.reach(Point::KeysRead).await;
            let is_last = keys.len() < KEYS_MAX;
            let arguments = [u8::from(is_last).to_string()].into_iter().chain(keys.iter().map(ToString::to_string));
            if self.holds.call_in(epoch, LOADING, &LOAD, arguments.collect()).await?.is_none() {
                // Redis has another epoch, in which all is loaded again.
                return Ok(());
            }
            if is_last {
                *progress = LoadProgress::default();
                tracing::info!(epoch, "loaded the keys of the database into Redis");
                return Ok(());
            }
            progress.after = keys.last().map(ToString::to_string).unwrap_or_default();
        }
        Ok(())
    }
}
