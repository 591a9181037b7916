//! The relay: leases lanes of the outbox, and publishes their messages in the order of each key.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::blocked_topics::BlockedTopics;
use super::fast_path::Outbox;
use super::publisher::{Publisher, met_outage};
use crate::engine::context::EngineContext;
use crate::engine::lifecycle::backoff_after;
use crate::engine::membership::Membership;
use crate::env::Pause;
use crate::key::Tenant;
use crate::log;
use crate::store::{Hint, LANES, Lease, LeasedLane, MessageId, NewParked, OutboxRow, Store, StoreError};
use crate::transport::{TransportError, TransportErrorKind};
use crate::unwind::caught_while;

/// How many lanes are leased at a time while many messages wait: the others are left to other processes.
const CROWDED_LANES: usize = 16;

/// How long an ordering key waits after its message failed once. Each further failure doubles it.
const FIRST_RETRY: Duration = Duration::from_millis(100);

/// The messages of one ordering key, in their order.
type OrderingKey = (Tenant, String, String);

/// The result of one pass over the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Messages were sent, and there may be more.
    Sent,
    /// No message can be sent now; `retries` says whether some are tried again later.
    Idle { retries: bool },
    /// The transport or the store fails.
    Outage,
}

/// What a pass leaves to the next one.
#[derive(Debug, Default)]
struct RelayState {
    /// The leased lanes.
    lanes: Vec<LeasedLane>,
    /// Whether more messages waited than one batch holds. Then lanes are read one by one, each while the one before is sent. Otherwise
    /// all lanes are read at once.
    is_crowded: bool,
}

/// The results of rows that were sent together.
#[derive(Debug, Default)]
pub(crate) struct SendResults {
    confirmed: Vec<MessageId>,
    parked: Vec<NewParked>,
    held_up: BTreeSet<OrderingKey>,
    is_outage: bool,
}

/// Reads the outbox in lanes, and publishes it in the order of each key.
pub(crate) struct Relay<S: Store> {
    ctx: Arc<EngineContext<S>>,
    membership: Arc<Membership<S>>,
    outbox: Arc<Outbox<S>>,
    publisher: Arc<Publisher<S>>,
    blocked_topics: BlockedTopics,
}

impl<S: Store> Relay<S> {
    pub(crate) fn new(membership: Arc<Membership<S>>, outbox: Arc<Outbox<S>>, publisher: Arc<Publisher<S>>) -> Self {
        let ctx = Arc::clone(&publisher.ctx);
        Self { ctx, membership, outbox, publisher, blocked_topics: BlockedTopics::default() }
    }
}

impl<S: Store> Relay<S> {
    /// Relays until it is dropped. Commits of this process wake it. It also polls, for messages of other processes and for retries.
    pub(crate) async fn relay(self: Arc<Self>) {
        if !self.ctx.is_relayed {
            return;
        }
        let mut state = RelayState::default();
        let mut failures = 0;
        let (mut is_filled, mut has_sent) = (true, false);
        loop {
            let pass = caught_while(self.relay_once(is_filled, &mut state)).await.unwrap_or_else(|panic| {
                self.ctx.lifecycle.has_panicked("relay", &panic);
                Ok(Pass::Outage)
            });
            let pass = match pass {
                Ok(pass) => pass,
                Err(error) => {
                    self.ctx.health.store_failed("relay", &error);
                    Pass::Outage
                }
            };
            let (pause, has_retries) = match pass {
                Pass::Sent => {
                    failures = 0;
                    (is_filled, has_sent) = (true, true);
                    continue;
                }
                Pass::Outage => {
                    failures += 1;
                    // Another process may reach the transport when this one cannot.
                    self.ctx.store.hint(Hint::Outbox);
                    // New messages do not shorten this pause.
                    self.ctx.env.sleep(backoff_after(failures)).await;
                    continue;
                }
                Pass::Idle { retries } => {
                    failures = 0;
                    let is_alone = !retries && !self.ctx.store.capabilities().shared;
                    // No other process writes to this store, so a poll finds only what a dead process left.
                    (self.ctx.settings.poll_interval.saturating_mul(if is_alone { 10 } else { 1 }), retries)
                }
            };
            let pausing = async {
                if has_retries {
                    self.ctx.env.sleep(pause).await;
                } else {
                    self.ctx.env.pause(Pause { found: std::mem::take(&mut has_sent), ..Pause::of(pause) }).await;
                }
            };
            is_filled = tokio::select! {
                biased;
                () = self.outbox.filled.notified() => true,
                () = pausing => false,
            };
        }
    }

    /// Publishes the due messages. Without an announced message it first checks that there is one, since leasing costs more. Lanes
    /// that an error left leased are released first. A process that cannot reach the transport leases nothing: another one may
    /// reach it.
    async fn relay_once(&self, is_filled: bool, state: &mut RelayState) -> Result<Pass, StoreError> {
        let Some(owner) = self.membership.member() else { return Ok(Pass::Idle { retries: false }) };
        self.release_lanes(&mut state.lanes).await?;
        if !is_filled && self.ctx.store.is_empty().await? {
            self.ctx.health.store_works("relay");
            return Ok(Pass::Idle { retries: false });
        }
        if self.ctx.health.transport_is_failing()
            && let Err(error) = self.ctx.transport.reachable().await
        {
            self.ctx.health.transport_failed("publish", &error);
            return Ok(Pass::Outage);
        }
        let lease = Lease { owner, ttl: self.ctx.settings.lease_ttl };
        // Only where there are other relays, which take the rest.
        let is_shared = state.is_crowded && self.ctx.store.capabilities().shared;
        let limit = if is_shared { CROWDED_LANES } else { usize::from(LANES) };
        state.lanes = self.ctx.store.lease_lanes(lease, limit).await?;
        self.ctx.health.store_works("relay");
        let sent = self.send_lanes(state).await;
        if sent.is_ok() {
            self.release_lanes(&mut state.lanes).await?;
        }
        sent
    }

    /// Sends the rows of the leased lanes. While some rows are sent, the results of the lanes before are recorded and the rows of the
    /// lanes after are read: lanes have no ordering key in common.
    async fn send_lanes(&self, state: &mut RelayState) -> Result<Pass, StoreError> {
        let mut pass = Pass::Idle { retries: true };
        let (mut lanes, was_crowded, mut count) = (state.lanes.iter().copied(), state.is_crowded, 0);
        let mut rows = self.read_next(&mut lanes, was_crowded).await?;
        let mut before = SendResults::default();
        while !rows.is_empty() {
            count += rows.len();
            let (sending, noted, following) =
                tokio::join!(self.send(rows), self.record_results(&before), self.read_next(&mut lanes, was_crowded));
            // The results of the rows that were just sent are recorded in any case.
            if noted.is_err() || following.is_err() || sending.is_outage {
                self.record_results(&sending).await?;
                noted?;
                following?;
                return Ok(Pass::Outage);
            }
            if !sending.confirmed.is_empty() {
                pass = Pass::Sent;
            }
            (before, rows) = (sending, following?);
        }
        state.is_crowded = count >= self.ctx.settings.relay_batch;
        self.record_results(&before).await?;
        Ok(pass)
    }

    /// The rows of the next lanes.
    async fn read_next(
        &self,
        lanes: &mut impl Iterator<Item = LeasedLane>,
        is_crowded: bool,
    ) -> Result<Vec<OutboxRow>, StoreError> {
        let limit = self.ctx.settings.relay_batch;
        let mut rows = Vec::new();
        while rows.len() < limit {
            let next: Vec<LeasedLane> = lanes.by_ref().take(if is_crowded { 1 } else { usize::from(LANES) }).collect();
            if next.is_empty() {
                break;
            }
            rows.extend(self.ctx.store.read_lanes(&next, limit).await?);
        }
        Ok(rows)
    }

    async fn release_lanes(&self, lanes: &mut Vec<LeasedLane>) -> Result<(), StoreError> {
        if !lanes.is_empty() {
            self.ctx.store.release_lanes(lanes).await?;
            lanes.clear();
        }
        Ok(())
    }

    /// Sends rows, and returns the results.
    pub(crate) async fn send(&self, rows: Vec<OutboxRow>) -> SendResults {
        let mut keys: BTreeMap<OrderingKey, VecDeque<OutboxRow>> = BTreeMap::new();
        for row in rows {
            let key = (row.tenant.clone(), row.aggregate_type.clone(), row.aggregate_id.clone());
            keys.entry(key).or_default().push_back(row);
        }
        let mut sending = SendResults::default();
        // One message of each key at a time: the next one of a key goes when this one is confirmed (G9).
        while !keys.is_empty() && !sending.is_outage {
            let round: Vec<(OrderingKey, OutboxRow)> =
                keys.iter_mut().filter_map(|(key, rows)| Some((key.clone(), rows.pop_front()?))).collect();
            self.send_round(round, &mut sending).await;
            keys.retain(|key, rows| !rows.is_empty() && !sending.held_up.contains(key));
        }
        sending
    }

    /// Records the results of rows. After a crash before this, the rows are sent again in their order.
    async fn record_results(&self, sending: &SendResults) -> Result<(), StoreError> {
        if !sending.confirmed.is_empty() {
            self.ctx.store.sent(&sending.confirmed).await?;
        }
        if !sending.parked.is_empty() {
            self.ctx.store.park(&sending.parked).await?;
        }
        Ok(())
    }

    async fn send_round(&self, round: Vec<(OrderingKey, OutboxRow)>, sending: &mut SendResults) {
        let (keys, rows): (Vec<OrderingKey>, Vec<OutboxRow>) = round.into_iter().unzip();
        let results = self.publisher.publish(&rows).await;
        if met_outage(&results) {
            // No message is at fault, so no attempt is counted.
            if let Some(Err(error)) = results.first() {
                self.ctx.health.transport_failed("publish", error);
            }
            sending.is_outage = true;
            return;
        }
        self.ctx.health.transport_works("publish");
        for ((key, row), result) in keys.into_iter().zip(&rows).zip(results) {
            match result {
                Ok(()) => {
                    self.blocked_topics.sent(&row.aggregate_type);
                    sending.confirmed.push(row.id);
                }
                Err(error) => {
                    sending.held_up.insert(key);
                    sending.parked.push(self.park(row, &error));
                }
            }
        }
    }

    /// Parks the key of a message that could not be sent. If the transport refuses the message itself, the key waits for an operator
    /// after the last attempt; any other problem may go away.
    fn park(&self, row: &OutboxRow, error: &TransportError) -> NewParked {
        let attempts = row.attempts.saturating_add(1);
        let is_final = error.kind() == TransportErrorKind::Refused && attempts >= self.ctx.settings.publish_attempts;
        let pause = FIRST_RETRY.saturating_mul(1 << row.attempts.min(20)).min(self.ctx.settings.publish_backoff_max);
        let retry_in = (!is_final).then_some(pause);
        let (message_id, event, topic) = (row.id, &row.event_type, &row.aggregate_type);
        // A connection that breaks leaves messages without an answer, and was warned of itself: only the next attempt shows more.
        let quiet_attempts = u32::from(error.kind() == TransportErrorKind::Unknown);
        // Of many messages that fail alike, one warning is enough.
        if is_final || (row.attempts == quiet_attempts && self.blocked_topics.is_news(topic, error.kind())) {
            log::warn!(%message_id, event, topic, attempt = attempts, ?retry_in, %error, "message not sent");
        } else {
            log::debug!(%message_id, event, topic, attempt = attempts, ?retry_in, %error, "message not sent");
        }
        NewParked { message: message_id, attempts, error: error.to_string(), retry_in }
    }
}
