//! Sending what was committed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use super::transactions::pause_after;
use crate::key::Tenant;
use crate::store::{Hint, Lease, LeasedLane, Message, MessageId, OutboxRow, Store, StoreError};
use crate::transport::{TransportError, TransportErrorKind};

/// How many lanes are leased at a time.
const LANES_AT_A_TIME: usize = 16;

/// The messages of one ordering key, in their order.
type OrderingKey = (Tenant, String, String);

/// How often a message was tried, across rounds.
type Attempts = BTreeMap<MessageId, u32>;

impl<S: Store> Shared<S> {
    /// Sends what is in the outbox, until it is dropped. It is woken after commits; the poll is for what others wrote
    /// and for what could not be sent before.
    pub(super) async fn relay(self: Arc<Self>) {
        if !self.store.capabilities().relayed {
            return;
        }
        let mut attempts = Attempts::new();
        let mut lanes = Vec::new();
        let mut failures = 0;
        loop {
            match self.relay_once(&mut attempts, &mut lanes).await {
                Ok(true) => {
                    failures = 0;
                    continue;
                }
                Ok(false) => failures = 0,
                Err(error) => {
                    tracing::warn!(%error, "relaying failed; trying again");
                    failures += 1;
                }
            }
            if !attempts.is_empty() {
                // Somebody else may get through to where this process cannot.
                self.store.hint(Hint::Outbox);
            }
            let pause = if failures > 0 || !attempts.is_empty() {
                pause_after(failures)
            } else if self.store.capabilities().shared {
                self.settings.poll_interval
            } else {
                // Nobody else writes to it: this only finds what a process that died had left.
                10 * self.settings.poll_interval
            };
            tokio::select! {
                biased;
                () = self.outbox_filled.notified() => {}
                () = self.env.sleep(pause) => {}
            }
        }
    }

    /// Sends what can be sent now; answers whether there may be more.
    /// What an error left leased comes first, or nobody sent it before the leases end.
    async fn relay_once(&self, attempts: &mut Attempts, lanes: &mut Vec<LeasedLane>) -> Result<bool, StoreError> {
        let Some(owner) = self.member() else { return Ok(false) };
        self.free_lanes(lanes).await?;
        if self.store.depth().await?.rows == 0 {
            attempts.clear();
            return Ok(false);
        }
        let lease = Lease { owner, ttl: self.settings.lease_ttl };
        *lanes = self.store.lease_lanes(lease, LANES_AT_A_TIME).await?;
        let mut sent = false;
        for &lane in lanes.iter() {
            sent |= self.send_lane(lane, attempts).await?;
        }
        self.free_lanes(lanes).await?;
        Ok(sent)
    }

    async fn free_lanes(&self, lanes: &mut Vec<LeasedLane>) -> Result<(), StoreError> {
        if !lanes.is_empty() {
            self.store.release_lanes(lanes).await?;
            lanes.clear();
        }
        Ok(())
    }

    async fn send_lane(&self, lane: LeasedLane, attempts: &mut Attempts) -> Result<bool, StoreError> {
        let rows = self.store.read_lane(lane, self.settings.relay_batch).await?;
        let mut keys: BTreeMap<OrderingKey, VecDeque<OutboxRow>> = BTreeMap::new();
        for row in rows {
            let key = (row.tenant.clone(), row.aggregate_type.clone(), row.aggregate_id.clone());
            keys.entry(key).or_default().push_back(row);
        }
        let mut any = false;
        let mut held_up = BTreeSet::new();
        // One message of each key at a time: the next one of a key goes when this one is confirmed (G9).
        while !keys.is_empty() {
            let round: Vec<(OrderingKey, OutboxRow)> = keys
                .iter_mut()
                .filter(|(key, _)| !held_up.contains(*key))
                .filter_map(|(key, rows)| Some((key.clone(), rows.pop_front()?)))
                .collect();
            keys.retain(|key, rows| !rows.is_empty() && !held_up.contains(key));
            if round.is_empty() {
                break;
            }
            any |= self.send_round(round, attempts, &mut held_up).await?;
        }
        Ok(any)
    }

    async fn send_round(
        &self,
        round: Vec<(OrderingKey, OutboxRow)>,
        attempts: &mut Attempts,
        held_up: &mut BTreeSet<OrderingKey>,
    ) -> Result<bool, StoreError> {
        let messages = round.iter().map(|(_, row)| Message::from(row.clone())).collect();
        let limit = self.settings.lease_ttl / 4;
        let results = match crate::env::timeout(&*self.env, limit, self.transport.publish(messages)).await {
            Ok(results) => results,
            Err(_) => round.iter().map(|_| Err(no_answer(limit))).collect(),
        };
        let mut confirmed = Vec::new();
        for ((key, row), result) in round.into_iter().zip(results) {
            match result {
                Ok(()) => {
                    attempts.remove(&row.id);
                    confirmed.push(row.id);
                }
                Err(error) => {
                    held_up.insert(key);
                    self.not_sent(&row, &error, attempts).await?;
                }
            }
        }
        if !confirmed.is_empty() {
            self.store.sent(&confirmed).await?;
        }
        Ok(!confirmed.is_empty())
    }

    async fn not_sent(&self, row: &OutboxRow, error: &TransportError, tried: &mut Attempts) -> Result<(), StoreError> {
        let attempts = tried.entry(row.id).or_default();
        *attempts += 1;
        tracing::warn!(message = %row.id, event = row.event_type, attempts = *attempts, %error, "a message was not sent");
        // An outage is nobody's fault; a message that the transport refuses holds up its own key only.
        if error.kind() == TransportErrorKind::Refused && *attempts >= self.settings.publish_attempts {
            self.store.park(row.id, *attempts, &error.to_string()).await?;
            tried.remove(&row.id);
        }
        Ok(())
    }
}

fn no_answer(limit: Duration) -> TransportError {
    TransportError::new(TransportErrorKind::Unknown, "publish", format!("no confirmation within {limit:?}"))
}
