//! The outbox of the store.

use std::time::Duration;

use async_trait::async_trait;

use crate::key::Tenant;
use crate::memory::MemoryStore;
use crate::memory::tables::data::Data;
use crate::memory::tables::work_row::HeldLease;
use crate::store::{
    Lease, LeasedLane, MessageId, NewDeadLetter, NewMessage, NewParked, Outbox, OutboxDepth, OutboxRow, ParkedKey,
    StoreError,
};

#[async_trait]
impl Outbox for MemoryStore {
    async fn lease_lanes(&self, lease: Lease, limit: usize) -> Result<Vec<LeasedLane>, StoreError> {
        self.writing("lease_lanes", |data, now| Some(Ok(data.outbox.lease_lanes(lease, limit, &data.members, now))))
            .await
    }

    async fn renew_lanes(&self, lanes: &[LeasedLane], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.writing("renew_lanes", |data, now| {
            let renew = |lane: &LeasedLane| {
                let held = data.outbox.held(*lane);
                held.map(|lane| lane.lease = Some(HeldLease::new(lease, now))).is_some()
            };
            Some(Ok(lanes.iter().map(renew).collect()))
        })
        .await
    }

    async fn release_lanes(&self, lanes: &[LeasedLane]) -> Result<(), StoreError> {
        self.writing("release_lanes", |data, _| {
            for lane in lanes {
                if let Some(lane) = data.outbox.held(*lane) {
                    lane.lease = None;
                }
            }
            Some(Ok(()))
        })
        .await
    }

    async fn read_lane(&self, lane: LeasedLane, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        self.reading("read_lane", |data, now| data.outbox.read(lane, limit, now)).await
    }

    async fn sent(&self, messages: &[MessageId]) -> Result<(), StoreError> {
        self.writing("sent", |data, _| {
            for message in messages {
                data.outbox.release(*message);
                data.outbox.delete(*message);
            }
            Some(Ok(()))
        })
        .await
    }

    async fn park(&self, parked: &[NewParked]) -> Result<(), StoreError> {
        self.writing("park", |data, now| {
            for parked in parked {
                data.outbox.park(parked, now);
            }
            Some(Ok(()))
        })
        .await
    }

    async fn parked(&self, tenant: Option<&Tenant>, limit: usize) -> Result<Vec<ParkedKey>, StoreError> {
        self.reading("parked", |data, _| data.outbox.parked(tenant, limit)).await
    }

    async fn release(&self, message: MessageId) -> Result<bool, StoreError> {
        self.writing("release", |data, _| Some(Ok(data.outbox.release(message)))).await
    }

    async fn discard(&self, message: MessageId, letter: &NewDeadLetter, note: &str) -> Result<bool, StoreError> {
        self.writing("discard", |data, now| {
            if !data.outbox.release(message) {
                return Some(Ok(false));
            }
            let payload = data.outbox.delete(message).map(|row| row.payload).unwrap_or_default();
            data.dead_letters.insert_discarded(NewDeadLetter { payload, ..letter.clone() }, note, now);
            Some(Ok(true))
        })
        .await
    }

    async fn oldest_ages(&self, messages: &[NewMessage]) -> Result<Vec<Option<Duration>>, StoreError> {
        let ages = |data: &Data, now| messages.iter().map(|message| data.outbox.oldest_age(message, now)).collect();
        self.reading("oldest_ages", ages).await
    }

    async fn depth(&self) -> Result<OutboxDepth, StoreError> {
        self.reading("depth", |data, now| data.outbox.depth(now)).await
    }
}
