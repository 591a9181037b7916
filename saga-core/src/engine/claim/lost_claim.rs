//! What becomes of a claim whose answer was lost.

use std::sync::{Mutex, PoisonError};

use crate::engine::store_calls::catch_panic;
use crate::log;
use crate::store::{MemberId, RetryClass, Store, StoreError};

/// Remembers a claim that the store did not answer.
///
/// The store may have leased rows to this process by that claim. This process does not know them, so it does not run them, and other
/// processes cannot claim them. The poller releases them before its next claim.
#[derive(Debug, Default)]
pub(super) struct LostClaim {
    /// The member that made the claim; `None` if the store answered the last one.
    owner: Mutex<Option<MemberId>>,
}

impl LostClaim {
    /// Releases what the claim before has lost, and then makes this one.
    pub(super) async fn claim<S: Store, T>(
        &self,
        store: &S,
        owner: MemberId,
        operation: &'static str,
        claim: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let lost = *self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(former) = lost {
            let count = catch_panic("release_unbegun", store.release_unbegun(former)).await?;
            log::debug!(count, "work of a lost claim released");
            self.set(None);
        }
        let claimed = catch_panic(operation, claim).await;
        if claimed.as_ref().is_err_and(|error| error.class() == RetryClass::Unknown) {
            self.set(Some(owner));
        }
        claimed
    }

    fn set(&self, owner: Option<MemberId>) {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = owner;
    }
}
