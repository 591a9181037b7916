use async_trait::async_trait;
use saga_core::store::{
    Lease, LeasedLane, MessageId, NewDeadLetter, NewParked, Outbox, OutboxDepth, OutboxRow, ParkedKey, Store,
    StoreError,
};

use super::Explored;
use super::store::slower_lease;

#[async_trait]
impl<S: Store> Outbox for Explored<S> {
    async fn lease_lanes(&self, lease: Lease, limit: usize) -> Result<Vec<LeasedLane>, StoreError> {
        self.through(self.inner.lease_lanes(slower_lease(lease), limit)).await
    }

    async fn renew_lanes(&self, lanes: &[LeasedLane], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.through(self.inner.renew_lanes(lanes, slower_lease(lease))).await
    }

    async fn release_lanes(&self, lanes: &[LeasedLane]) -> Result<(), StoreError> {
        self.through(self.inner.release_lanes(lanes)).await
    }

    async fn read_lane(&self, lane: LeasedLane, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        self.through(self.inner.read_lane(lane, limit)).await
    }

    async fn sent(&self, messages: &[MessageId]) -> Result<(), StoreError> {
        self.through(self.inner.sent(messages)).await
    }

    async fn park(&self, parked: &[NewParked]) -> Result<(), StoreError> {
        self.through(self.inner.park(parked)).await
    }

    async fn parked(&self, limit: usize) -> Result<Vec<ParkedKey>, StoreError> {
        self.through(self.inner.parked(limit)).await
    }

    async fn release(&self, message: MessageId) -> Result<bool, StoreError> {
        self.through(self.inner.release(message)).await
    }

    async fn discard(&self, message: MessageId, letter: &NewDeadLetter, note: &str) -> Result<bool, StoreError> {
        self.through(self.inner.discard(message, letter, note)).await
    }

    async fn depth(&self) -> Result<OutboxDepth, StoreError> {
        self.through(self.inner.depth()).await
    }
}
