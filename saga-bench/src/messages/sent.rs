//! Messages that are sent without an outbox, and their receiver.

use anyhow::Result;
use saga_core::store::{OutboxRow, Timestamp};
use saga_core::transport::{Message, Subscription, Transport};

use super::outbox::{TOPIC, message};
use crate::clock::Stopwatch;

/// How many messages the transport is given at a time: as many as the relay gives it at most.
pub(crate) const CALL: u32 = 500;

/// The subscription from which all contenders receive. It holds at most `prefetch` messages that are not settled.
pub(crate) fn subscription(prefetch: usize) -> Subscription {
    Subscription { name: "receiver".to_owned(), topics: vec![TOPIC.to_owned()], prefetch }
}

/// Publishes the messages through the transport, without an outbox and a relay, and returns how many were confirmed a second.
pub(crate) async fn without_outbox(transport: &dyn Transport, messages: u32, bytes: usize) -> Result<f64> {
    let committed = |number| {
        let new = message(number, 1, bytes);
        Message::from(OutboxRow {
            id: new.id,
            kind: new.kind,
            tenant: new.tenant,
            aggregate_type: new.aggregate_type,
            aggregate_id: new.aggregate_id,
            event_type: new.event_type,
            payload: new.payload,
            position: new.position,
            committed_at: Timestamp(1),
            headers: new.headers,
            attempts: 0,
        })
    };
    let watch = Stopwatch::started();
    for first in (0..messages).step_by(CALL as usize) {
        let call = (first..messages.min(first + CALL)).map(committed).collect();
        for answer in transport.publish(call).await {
            answer?;
        }
    }
    Ok(f64::from(messages) / watch.elapsed().as_secs_f64())
}
