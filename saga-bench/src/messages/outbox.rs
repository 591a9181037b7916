//! The messages that are sent, and how they come into the outbox.

use std::time::Duration;

use anyhow::{Result, ensure};
use saga_core::Tenant;
use saga_core::store::{Changes, Headers, MessageId, MessageKind, NewMessage, Records as _, lane_of};
use saga_postgres::PostgresStore;
use uuid::Uuid;

/// What the messages are about.
pub(crate) const TOPIC: &str = "order";
/// The name of the event.
pub(crate) const EVENT: &str = "order-noted";
/// How many messages one commit writes.
const COMMITTED_AT_A_TIME: u32 = 500;

/// The content of a message: text of that many bytes.
pub(crate) fn body(bytes: usize) -> Vec<u8> {
    format!("\"{}\"", "x".repeat(bytes.saturating_sub(2))).into_bytes()
}

/// The message of that number. So many in a row have one ordering key.
pub(super) fn message(number: u32, per_key: u32, bytes: usize) -> NewMessage {
    let tenant = Tenant::default();
    let aggregate_id = format!("order-{}", number / per_key);
    NewMessage {
        id: MessageId(Uuid::from_u128(u128::from(number) + 1)),
        kind: MessageKind::Event,
        lane: lane_of(&tenant, TOPIC, &aggregate_id),
        tenant,
        aggregate_type: TOPIC.to_owned(),
        aggregate_id,
        event_type: EVENT.to_owned(),
        payload: body(bytes),
        position: u64::from(number % per_key) + 1,
        headers: Headers::default(),
        due_in: Duration::ZERO,
    }
}

/// Commits messages to the outbox, as steps do.
pub(super) async fn fill(store: &PostgresStore, messages: u32, per_key: u32, bytes: usize) -> Result<()> {
    let mut next = 0;
    while next < messages {
        let end = messages.min(next + COMMITTED_AT_A_TIME);
        commit(store, (next..end).map(|number| message(number, per_key, bytes)).collect()).await?;
        next = end;
    }
    Ok(())
}

/// Commits these messages.
pub(super) async fn commit(store: &PostgresStore, messages: Vec<NewMessage>) -> Result<()> {
    let applied = store.record(vec![Changes { messages, ..Changes::default() }]).await?;
    ensure!(applied.iter().all(Result::is_ok), "the outbox did not take the messages: {applied:?}");
    Ok(())
}
