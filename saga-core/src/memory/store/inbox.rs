//! The inbox of the store.

use std::time::Duration;

use async_trait::async_trait;

use crate::memory::MemoryStore;
use crate::memory::clock::Moment;
use crate::memory::statements::claims::is_free;
use crate::memory::tables::data::Data;
use crate::memory::tables::work_row::{HeldLease, WorkRow};
use crate::store::{
    ClaimedMessage, ClaimedMessages, Inbox, Lease, MessageId, NewReceived, ReceivedBatch, StoreError, StoreErrorKind,
    Timestamp, WorkId, WorkRef,
};

#[async_trait]
impl Inbox for MemoryStore {
    async fn receive(&self, messages: Vec<NewReceived>) -> Result<ReceivedBatch, StoreError> {
        let mut messages = messages;
        self.writing("receive", |data, now| {
            let messages = std::mem::take(&mut messages);
            if let Some(double) = messages.iter().find(|new| data.work.contains_key(&new.work)) {
                let detail = format!("there is a work row {} already", double.work.0);
                return Some(Err(StoreError::new(StoreErrorKind::Misuse, "receive", detail)));
            }
            let mut new = Vec::with_capacity(messages.len());
            for received in messages {
                let is_new = !data.received.contains_key(&received.message.id);
                if is_new {
                    data.insert_message(received.work, received.message, received.lease, now);
                }
                new.push(is_new);
            }
            Some(Ok(ReceivedBatch { new, now }))
        })
        .await
    }

    async fn claim_received(&self, lease: Lease, limit: usize) -> Result<ClaimedMessages, StoreError> {
        self.writing("claim_received", |data, now| Some(Ok(claim(data, lease, limit, now)))).await
    }

    async fn forget_received(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        self.writing("forget_received", |data, now| {
            let is_old = |(_, (at, work)): &(&MessageId, &(Timestamp, WorkId))| {
                now.since(*at) > older_than && !data.work.contains_key(work)
            };
            let old: Vec<MessageId> = data.received.iter().filter(is_old).map(|(id, _)| *id).take(limit).collect();
            for id in &old {
                data.received.remove(id);
            }
            Some(Ok(old.len() as u64))
        })
        .await
    }
}

fn claim(data: &mut Data, lease: Lease, limit: usize, now: Timestamp) -> ClaimedMessages {
    let mut claimed = ClaimedMessages { now, ..ClaimedMessages::default() };
    for (due_at, id) in &data.due {
        let Some(WorkRow { message: Some(message), epoch, attempts, recovered, .. }) = data.work.get(id) else {
            continue;
        };
        if !is_free(data, *id, now) {
            continue;
        }
        if *due_at > now || claimed.messages.len() >= limit {
            claimed.next_due_in = Some(due_at.since(now));
            break;
        }
        let work = WorkRef { id: *id, epoch: epoch + 1 };
        let (attempts, recovered) = (*attempts, *recovered);
        claimed.messages.push(ClaimedMessage { work, message: message.clone(), attempts, recovered });
    }
    for taken in &mut claimed.messages {
        let Some(row) = data.work.get_mut(&taken.work.id) else { continue };
        // Only a lease that its owner did not release is still on a free row: that owner vanished.
        row.recovered |= row.lease.is_some();
        row.epoch = taken.work.epoch;
        row.lease = Some(HeldLease::new(lease, now));
        taken.recovered = row.recovered;
    }
    claimed
}
