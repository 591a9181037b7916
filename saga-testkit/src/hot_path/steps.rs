use std::time::Duration;

use saga_core::store::{Changes, Claim, Lease, Store, WorkId};

use crate::one_step::{advanced, begun, member};

/// Steps of sagas that are begun one by one, in the middle of which they are measured.
#[derive(Debug)]
pub struct Steps {
    lease: Lease,
    begun: u64,
}

impl Steps {
    /// None so far.
    ///
    /// # Panics
    /// When the store fails.
    ///
    /// # Cancel safety
    /// Dropped, a member more may have joined.
    pub async fn new<S: Store>(store: &S) -> Self {
        Self { lease: member(store, Duration::from_hours(1)).await, begun: 0 }
    }

    /// So many more, begun.
    ///
    /// # Panics
    /// When the store fails.
    ///
    /// # Cancel safety
    /// Dropped, some were begun.
    pub async fn claims<S: Store>(&mut self, store: &S, steps: u64) -> Vec<Claim> {
        let mut claims = Vec::new();
        for _ in 0..steps {
            self.begun += 1;
            // Other steps on the same server have keys of their own.
            claims.push(begun(store, &format!("k-{}-{}", self.lease.owner.0, self.begun)).await);
        }
        claims
    }

    /// The changes by which their sagas go on: each step is recorded, its work row is deleted, and the command of the next
    /// one is inserted.
    ///
    /// # Panics
    /// When the store fails.
    ///
    /// # Cancel safety
    /// Dropped, some ids are never used.
    pub async fn advanced<S: Store>(&self, store: &S, claims: &[Claim]) -> Vec<Changes> {
        let count = u32::try_from(claims.len()).unwrap_or(u32::MAX);
        #[expect(clippy::expect_used, reason = "a test fails by panicking")]
        let ids = store.reserve_ids(count).await.expect("the store gives ids");
        claims.iter().zip(ids).map(|(claim, id)| advanced(claim, WorkId(id), self.lease)).collect()
    }
}
