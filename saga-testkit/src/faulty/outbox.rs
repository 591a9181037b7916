use std::time::Duration;

use async_trait::async_trait;
use saga_core::key::Tenant;
use saga_core::store::{
    Lease, LeasedLane, MessageId, NewDeadLetter, NewMessage, NewParked, Outbox, OutboxDepth, OutboxRow, ParkedKey,
    StoreError, lane_of,
};

use super::{FaultyStore, StoreFlaw};

/// More keys than any check parks.
const MANY: usize = 1000;

#[async_trait]
impl Outbox for FaultyStore {
    async fn lease_lanes(&self, lease: Lease, limit: usize) -> Result<Vec<LeasedLane>, StoreError> {
        let mut lanes = self.inner.lease_lanes(self.revived_lease(lease), limit).await?;
        let before = self.noted().lanes.clone();
        self.noted().lanes.extend(lanes.iter().map(|lane| (lane.lane, *lane)));
        if self.has(StoreFlaw::LeasesLanesTwice) {
            lanes.extend(before.into_values());
        }
        Ok(lanes)
    }

    async fn renew_lanes(&self, lanes: &[LeasedLane], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.inner.renew_lanes(lanes, self.revived_lease(lease)).await
    }

    async fn release_lanes(&self, lanes: &[LeasedLane]) -> Result<(), StoreError> {
        self.inner.release_lanes(lanes).await
    }

    async fn read_lane(&self, lane: LeasedLane, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        let newest = self.noted().lanes.get(&lane.lane).copied();
        let lane = newest.filter(|_| self.has(StoreFlaw::ReadsUnderAnyEpoch)).unwrap_or(lane);
        let mut rows = self.inner.read_lane(lane, limit).await?;
        if self.has(StoreFlaw::ReadsBackwards) {
            rows.reverse();
        }
        if self.has(StoreFlaw::ParksTheLane) {
            let parked = self.inner.parked(None, MANY).await?;
            let lane_of_key = |key: &ParkedKey| lane_of(&key.tenant, &key.aggregate_type, &key.aggregate_id);
            rows.retain(|_| !parked.iter().any(|key| lane_of_key(key) == lane.lane));
        }
        Ok(rows)
    }

    async fn sent(&self, messages: &[MessageId]) -> Result<(), StoreError> {
        if self.has(StoreFlaw::KeepsSent) { Ok(()) } else { self.inner.sent(messages).await }
    }

    async fn park(&self, parked: &[NewParked]) -> Result<(), StoreError> {
        let mut parked = parked.to_vec();
        if self.has(StoreFlaw::ParksForGood) {
            for parked in &mut parked {
                parked.retry_in = None;
            }
        }
        self.inner.park(&parked).await
    }

    async fn parked(&self, tenant: Option<&Tenant>, limit: usize) -> Result<Vec<ParkedKey>, StoreError> {
        self.inner.parked(tenant, limit).await
    }

    async fn release(&self, message: MessageId) -> Result<bool, StoreError> {
        self.inner.release(message).await
    }

    async fn discard(&self, message: MessageId, letter: &NewDeadLetter, note: &str) -> Result<bool, StoreError> {
        if self.has(StoreFlaw::DiscardsNothing) {
            return self.inner.release(message).await;
        }
        if self.has(StoreFlaw::DiscardsSilently) {
            let was_parked = self.inner.release(message).await?;
            self.inner.sent(&[message]).await?;
            return Ok(was_parked);
        }
        self.inner.discard(message, letter, note).await
    }

    async fn oldest_ages(&self, messages: &[NewMessage]) -> Result<Vec<Option<Duration>>, StoreError> {
        let mut ages = self.inner.oldest_ages(messages).await?;
        if self.has(StoreFlaw::OverlooksParked) {
            let parked = self.inner.parked(None, MANY).await?;
            for (message, age) in messages.iter().zip(&mut ages) {
                let is_its = |key: &ParkedKey| {
                    key.tenant == message.tenant
                        && key.aggregate_type == message.aggregate_type
                        && key.aggregate_id == message.aggregate_id
                };
                *age = age.filter(|_| !parked.iter().any(is_its));
            }
        }
        Ok(ages)
    }

    async fn depth(&self) -> Result<OutboxDepth, StoreError> {
        self.inner.depth().await
    }
}
