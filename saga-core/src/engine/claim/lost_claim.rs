//! What becomes of a claim whose answer was lost.

use std::sync::{Mutex, PoisonError};

use crate::engine::store_calls::catch_panic;
use crate::log;
use crate::store::{MemberId, RetryClass, Store, StoreError};

/// Whether the last claim of a claimer may have got rows of which this process does not know.
///
/// This process runs none of them, and for others they are leased. So they are released before the next claim.
#[derive(Debug, Default)]
pub(super) struct LostClaim {
    /// As which member it was made.
    owner: Mutex<Option<MemberId>>,
}

impl LostClaim {
    /// Makes a claim, and releases what an earlier one has lost before it.
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
