//! Numbered messages for the own tests of a transport: they are published, received and settled by their numbers.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{MessageId, Timestamp};
use saga_core::transport::{Delivery, Headers, Incoming, Message, MessageKind, Settlement, Subscription, Transport};

/// The topic of the tests.
pub const TOPIC: &str = "orders";
/// How long anything may take that has to happen.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// The message of a number, with an id and a key of its own.
pub fn message(number: u32) -> Message {
    Message {
        id: MessageId(uuid::Uuid::from_u128(u128::from(number) + (0xa3a3_u128 << 96))),
        kind: MessageKind::Event,
        tenant: Tenant::default(),
        topic: TOPIC.into(),
        key: format!("k-{number}"),
        event_type: "OrderPlaced".into(),
        payload: number.to_string().into_bytes(),
        committed_at: Timestamp(1_735_689_600_000_000 + i64::from(number)),
        headers: Headers::default(),
    }
}

/// The number of a message.
///
/// # Panics
/// When it is another message, or one that cannot be read.
pub fn number(delivery: &Delivery) -> u32 {
    let message = delivery.message.as_ref().expect("it is a message");
    String::from_utf8_lossy(&message.payload).parse().expect("the payload is a number")
}
/// Subscribes to [`TOPIC`].
///
/// # Panics
/// When the transport refuses it.
///
/// # Cancel safety
/// Dropped, it may have subscribed.
pub async fn subscribe(transport: &impl Transport, name: &str, prefetch: usize) -> Box<dyn Incoming> {
    let subscription = Subscription { name: name.into(), topics: vec![TOPIC.into()], prefetch };
    transport.subscribe(subscription).await.expect("one can subscribe")
}

/// Receives so many messages, and leaves them unsettled.
///
/// # Panics
/// When they do not come within two minutes, or the subscription fails.
///
/// # Cancel safety
/// Dropped, messages that it has received are unsettled, and come again.
pub async fn receive(incoming: &mut Box<dyn Incoming>, count: usize) -> Vec<Delivery> {
    let mut came = Vec::new();
    while came.len() < count {
        let more = tokio::time::timeout(PATIENCE, incoming.receive(count - came.len())).await;
        let numbers: Vec<u32> = came.iter().map(number).collect();
        came.extend(more.unwrap_or_else(|_| panic!("only {numbers:?} came")).expect("the subscription works"));
    }
    came
}
/// Accepts deliveries.
///
/// # Panics
/// When the subscription fails.
///
/// # Cancel safety
/// Dropped, some of them may be settled.
pub async fn accept(incoming: &mut Box<dyn Incoming>, deliveries: &[Delivery]) {
    let settled: Vec<_> = deliveries.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
    incoming.settle(&settled).await.expect("it can be settled");
}

/// Receives and accepts so many messages: their numbers in their order.
///
/// # Panics
/// When they do not come within two minutes, or the subscription fails.
///
/// # Cancel safety
/// Dropped, messages that it has received may be settled.
pub async fn take(incoming: &mut Box<dyn Incoming>, count: usize) -> Vec<u32> {
    let came = receive(incoming, count).await;
    accept(incoming, &came).await;
    came.iter().map(number).collect()
}

/// Publishes until each message is confirmed, as a relay does.
///
/// # Panics
/// When that takes longer than two minutes.
///
/// # Cancel safety
/// Dropped, some of them may be published.
pub async fn publish(transport: &impl Transport, messages: Vec<Message>) {
    let mut open = messages;
    let confirmed = async {
        while !open.is_empty() {
            let answers = transport.publish(open.clone()).await;
            let tried = std::mem::take(&mut open).into_iter().zip(answers);
            open = tried.filter(|(_, answer)| answer.is_err()).map(|(message, _)| message).collect();
        }
    };
    tokio::time::timeout(PATIENCE, confirmed).await.expect("the messages are confirmed in time");
}
