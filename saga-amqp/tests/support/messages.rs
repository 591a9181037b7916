//! Messages, and who receives them.

use std::collections::BTreeSet;

use saga_core::key::Tenant;
use saga_core::store::{MessageId, Timestamp};
use saga_core::transport::{
    Answer, Delivery, Headers, Incoming, Message, MessageKind, Settlement, Subscription, Transport, Unreadable,
    service_topic,
};

use super::wait::PATIENCE;

/// The topic of the tests.
pub(crate) const TOPIC: &str = "orders";

/// The message of a number, with an id of its own.
pub(crate) fn message(number: u32) -> Message {
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

/// The message of a number, as a message of this kind to the service `payments`.
pub(crate) fn addressed(kind: MessageKind, number: u32) -> Message {
    let headers = Headers {
        saga_key: Some(format!("order/{number}")),
        step: Some("charge-card".into()),
        service: Some("payments".into()),
        reply_to: Some("orders".into()),
        correlation: (kind == MessageKind::Reply).then(|| message(number + 1).id),
        answer: (kind != MessageKind::Command).then_some(Answer::Done),
        ..Headers::default()
    };
    Message { kind, topic: service_topic("payments"), event_type: "charge-card".into(), headers, ..message(number) }
}

/// The number of a message.
pub(crate) fn number(delivery: &Delivery) -> u32 {
    String::from_utf8_lossy(&read(delivery).payload).parse().expect("the payload is a number")
}

/// What was delivered, which has to be a message.
pub(crate) fn read(delivery: &Delivery) -> &Message {
    delivery.message.as_ref().expect("it is a message")
}

/// Receives what is addressed to a service, as a runtime does.
pub(crate) async fn subscribe_service(transport: &impl Transport, service: &str, prefetch: usize) -> Box<dyn Incoming> {
    let topic = service_topic(service);
    let subscription = Subscription { name: topic.clone(), topics: vec![topic], prefetch };
    transport.subscribe(subscription).await.expect("one can subscribe")
}

/// Receives and accepts until so many deliveries were no messages; answers those, and the numbers of the messages.
pub(crate) async fn receive_unreadable(
    incoming: &mut Box<dyn Incoming>,
    count: usize,
) -> (Vec<Unreadable>, BTreeSet<u32>) {
    let (mut unreadable, mut numbers) = (Vec::new(), BTreeSet::new());
    while unreadable.len() < count {
        let came = receive(incoming, 100).await;
        let settled: Vec<_> = came.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
        incoming.settle(&settled).await.expect("what is no message is settled like one");
        for delivery in came {
            match &delivery.message {
                Ok(_) => _ = numbers.insert(number(&delivery)),
                Err(what) => unreadable.push(what.clone()),
            }
        }
    }
    (unreadable, numbers)
}

pub(crate) async fn subscribe(transport: &impl Transport, name: &str, prefetch: usize) -> Box<dyn Incoming> {
    let subscription = Subscription { name: name.into(), topics: vec![TOPIC.into()], prefetch };
    transport.subscribe(subscription).await.expect("one can subscribe")
}

/// Receives at least one message in time.
pub(crate) async fn receive(incoming: &mut Box<dyn Incoming>, limit: usize) -> Vec<Delivery> {
    let came = tokio::time::timeout(PATIENCE, incoming.receive(limit)).await;
    came.expect("a message comes in time").expect("the subscription works")
}

/// Receives and accepts until every one of these numbers has come, in whatever order and however often.
pub(crate) async fn receive_all(incoming: &mut Box<dyn Incoming>, mut missing: BTreeSet<u32>) {
    receive_until(incoming, &mut missing, 0).await;
}

/// Receives and accepts until at most so many of these numbers are missing.
pub(crate) async fn receive_until(incoming: &mut Box<dyn Incoming>, missing: &mut BTreeSet<u32>, left: usize) {
    while missing.len() > left {
        let came = tokio::time::timeout(PATIENCE, incoming.receive(100)).await;
        let came = came.unwrap_or_else(|_| panic!("{missing:?} never came")).expect("the subscription works");
        for delivery in &came {
            missing.remove(&number(delivery));
        }
        let settled: Vec<_> = came.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
        // An acknowledgement that is lost with its connection makes the messages come again.
        _ = incoming.settle(&settled).await;
    }
}

/// Publishes until the broker confirmed, as a relay does.
pub(crate) async fn publish_until_confirmed(transport: &impl Transport, messages: Vec<Message>) {
    let mut open = messages;
    super::wait::until("every message confirmed", async || {
        let answers = transport.publish(open.clone()).await;
        let tried = std::mem::take(&mut open).into_iter().zip(answers);
        open = tried.filter(|(_, answer)| answer.is_err()).map(|(message, _)| message).collect();
        open.is_empty().then_some(())
    })
    .await;
}
