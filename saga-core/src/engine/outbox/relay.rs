//! Sending what was committed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::blocked_topics::BlockedTopics;
use super::fast_path::Outbox;
use super::publisher::{Publisher, met_outage};
use crate::engine::context::EngineContext;
use crate::engine::lifecycle::backoff_after;
use crate::engine::membership::Membership;
use crate::key::Tenant;
use crate::log;
use crate::store::{Hint, LANES, Lease, LeasedLane, MessageId, NewParked, OutboxRow, Store, StoreError};
use crate::transport::{TransportError, TransportErrorKind};
use crate::unwind::caught_while;

/// How many lanes are leased at a time where much waits: some are left for other processes.
const CROWDED_LANES: usize = 16;

/// How long a key waits whose message was tried once in vain. Each further attempt doubles it.
const FIRST_RETRY: Duration = Duration::from_millis(100);

/// The messages of one ordering key, in their order.
type OrderingKey = (Tenant, String, String);

/// What became of a look at the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Something was sent: there may be more.
    Sent,
    /// There is nothing that could be sent now; whether some of it will be tried again.
    Idle { retries: bool },
    /// The transport takes nothing from anybody at present.
    Outage,
}

/// What one pass leaves to the next.
#[derive(Debug, Default)]
struct Turn {
    /// What is leased.
    lanes: Vec<LeasedLane>,
    /// Whether more waited than is sent at a time. Then lane after lane is read, while the one before is sent; otherwise all
    /// of them are read at once, since what waits in each is little.
    is_crowded: bool,
}

/// What becomes of rows that are sent together.
#[derive(Debug, Default)]
pub(crate) struct Sending {
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
    /// Sends what is in the outbox, until it is dropped. It is woken after commits; the poll is for what others wrote
    /// and for what could not be sent before.
    pub(crate) async fn relay(self: Arc<Self>) {
        if !self.ctx.is_relayed {
            return;
        }
        let mut turn = Turn::default();
        let mut failures = 0;
        let mut is_filled = true;
        loop {
            let pass = caught_while(self.relay_once(is_filled, &mut turn)).await.unwrap_or_else(|panic| {
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
            let pause = match pass {
                Pass::Sent => {
                    failures = 0;
                    is_filled = true;
                    continue;
                }
                Pass::Outage => {
                    failures += 1;
                    // Another process may reach the transport when this one cannot.
                    self.ctx.store.hint(Hint::Outbox);
                    // What is committed meanwhile makes nothing better.
                    self.ctx.env.sleep(backoff_after(failures)).await;
                    continue;
                }
                Pass::Idle { retries } => {
                    failures = 0;
                    let is_alone = !retries && !self.ctx.store.capabilities().shared;
                    // No other process writes to it: this only finds what a dead process left behind.
                    self.ctx.settings.poll_interval.saturating_mul(if is_alone { 10 } else { 1 })
                }
            };
            is_filled = tokio::select! {
                biased;
                () = self.outbox.filled.notified() => true,
                () = self.ctx.env.sleep(pause) => false,
            };
        }
    }

    /// Publishes the due messages. Unless a message was announced, it first looks for one, since leasing is more
    /// expensive. Messages that an error left leased come first; otherwise they would wait for the end of their
    /// leases. A process that is cut off from the transport leases nothing: another one may reach it, and needs the
    /// lanes.
    async fn relay_once(&self, is_filled: bool, turn: &mut Turn) -> Result<Pass, StoreError> {
        let Some(owner) = self.membership.member() else { return Ok(Pass::Idle { retries: false }) };
        self.free_lanes(&mut turn.lanes).await?;
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
        let limit = if turn.is_crowded { CROWDED_LANES } else { usize::from(LANES) };
        turn.lanes = self.ctx.store.lease_lanes(lease, limit).await?;
        self.ctx.health.store_works("relay");
        let sent = self.send_lanes(turn).await;
        if sent.is_ok() {
            self.free_lanes(&mut turn.lanes).await?;
        }
        sent
    }

    /// Sends what lies in the leased lanes. While some rows are under way, those of the lanes before are written off and
    /// those of the lanes behind are read: no two of them have an ordering key in common.
    async fn send_lanes(&self, turn: &mut Turn) -> Result<Pass, StoreError> {
        let mut pass = Pass::Idle { retries: true };
        let (mut lanes, was_crowded, mut count) = (turn.lanes.iter().copied(), turn.is_crowded, 0);
        let mut rows = self.read_next(&mut lanes, was_crowded).await?;
        let mut before = Sending::default();
        while !rows.is_empty() {
            count += rows.len();
            let (sending, noted, following) =
                tokio::join!(self.send(rows), self.note(&before), self.read_next(&mut lanes, was_crowded));
            // What was sent meanwhile is written off in any case.
            if noted.is_err() || following.is_err() || sending.is_outage {
                self.note(&sending).await?;
                noted?;
                following?;
                return Ok(Pass::Outage);
            }
            if !sending.confirmed.is_empty() {
                pass = Pass::Sent;
            }
            (before, rows) = (sending, following?);
        }
        turn.is_crowded = count >= self.ctx.settings.relay_batch;
        self.note(&before).await?;
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

    async fn free_lanes(&self, lanes: &mut Vec<LeasedLane>) -> Result<(), StoreError> {
        if !lanes.is_empty() {
            self.ctx.store.release_lanes(lanes).await?;
            lanes.clear();
        }
        Ok(())
    }

    /// Sends rows, and answers what became of them.
    pub(crate) async fn send(&self, rows: Vec<OutboxRow>) -> Sending {
        let mut keys: BTreeMap<OrderingKey, VecDeque<OutboxRow>> = BTreeMap::new();
        for row in rows {
            let key = (row.tenant.clone(), row.aggregate_type.clone(), row.aggregate_id.clone());
            keys.entry(key).or_default().push_back(row);
        }
        let mut sending = Sending::default();
        // One message of each key at a time: the next one of a key goes when this one is confirmed (G9).
        while !keys.is_empty() && !sending.is_outage {
            let round: Vec<(OrderingKey, OutboxRow)> =
                keys.iter_mut().filter_map(|(key, rows)| Some((key.clone(), rows.pop_front()?))).collect();
            self.send_round(round, &mut sending).await;
            keys.retain(|key, rows| !rows.is_empty() && !sending.held_up.contains(key));
        }
        sending
    }

    /// Writes down what became of rows: all at once, since what a crash before this leaves behind is sent again in its
    /// order.
    async fn note(&self, sending: &Sending) -> Result<(), StoreError> {
        if !sending.confirmed.is_empty() {
            self.ctx.store.sent(&sending.confirmed).await?;
        }
        if !sending.parked.is_empty() {
            self.ctx.store.park(&sending.parked).await?;
        }
        Ok(())
    }

    async fn send_round(&self, round: Vec<(OrderingKey, OutboxRow)>, sending: &mut Sending) {
        let (keys, rows): (Vec<OrderingKey>, Vec<OutboxRow>) = round.into_iter().unzip();
        let results = self.publisher.publish(&rows).await;
        if met_outage(&results) {
            // No message is at fault: no attempt is counted, and everything stays as it is.
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
                    sending.parked.push(self.not_sent(row, &error));
                }
            }
        }
    }

    /// A message that could not be sent holds up its own key only, where everybody sees it. Only one that the transport
    /// refuses for what it is waits for a person in the end: whatever else is in the way may go away by itself.
    fn not_sent(&self, row: &OutboxRow, error: &TransportError) -> NewParked {
        let attempts = row.attempts.saturating_add(1);
        let is_final = error.kind() == TransportErrorKind::Refused && attempts >= self.ctx.settings.publish_attempts;
        let pause = FIRST_RETRY.saturating_mul(1 << row.attempts.min(20)).min(self.ctx.settings.publish_backoff_max);
        let retry_in = (!is_final).then_some(pause);
        let (message, message_id, event, topic) = (row.id, row.id, &row.event_type, &row.aggregate_type);
        // Of many messages that fail alike, one warning is enough.
        if is_final || (row.attempts == 0 && self.blocked_topics.is_news(topic, error.kind())) {
            log::warn!(%message_id, event, topic, attempt = attempts, ?retry_in, %error, "message not sent");
        } else {
            log::debug!(%message_id, event, topic, attempt = attempts, ?retry_in, %error, "message not sent");
        }
        NewParked { message, attempts, error: error.to_string(), retry_in }
    }
}
