//! What else is kept for a time only: message ids, decided dead letters, the counters of ordering keys, and the keys of
//! requests. And locks of steps whose commands are gone.

use super::maintenance::{Maintenance, PassError};
use crate::engine::store_calls::catch_panic;
use crate::store::{Store, StoreError, StoreErrorKind};

/// How many rows one statement deletes.
const AT_A_TIME: usize = 5_000;

impl<S: Store> Maintenance<S> {
    /// Deletes some of each kind; answers whether more may be due.
    pub(super) async fn forget_batch(&self) -> Result<bool, PassError> {
        let (store, retention) = (&self.ctx.store, self.ctx.settings.retention);
        let counts = [
            catch_panic("forget_received", store.forget_received(retention, AT_A_TIME)).await?,
            catch_panic("forget_dead_letters", store.forget_dead_letters(retention, AT_A_TIME)).await?,
            catch_panic("delete_expired_keys", store.delete_expired_keys(AT_A_TIME)).await?,
            catch_panic("forget_published", store.forget_published(retention, AT_A_TIME)).await?,
            self.end_abandoned_locks().await?,
        ];
        Ok(counts.iter().any(|count| *count >= AT_A_TIME as u64))
    }

    /// A lock that another call holds at this moment is left for the next pass.
    async fn end_abandoned_locks(&self) -> Result<u64, StoreError> {
        match catch_panic("end_abandoned_locks", self.ctx.store.end_abandoned_locks(AT_A_TIME)).await {
            Err(error) if error.kind() == StoreErrorKind::Conflict => Ok(0),
            ended => ended,
        }
    }
}
