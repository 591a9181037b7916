//! What others send: records that are no messages, and those of a Debezium connector.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer as _, ThreadedProducer};
use saga_core::store::Timestamp;
use saga_core::transport::{
    Headers, Incoming, Message, MessageKind, Settlement, Subscription, Transport, service_topic,
};
use saga_kafka::KafkaTransport;
use saga_servers::TansuServer;

use crate::support::messages::{accept, message, publish, receive, subscribe, take};
use crate::support::{Cluster, on_tansu};

/// Sends a record as a stranger does, and waits until the cluster has it.
fn send(brokers: &str, topic: &str, key: &str, payload: &[u8], headers: &[(&str, &str)]) {
    let producer: ThreadedProducer<DefaultProducerContext> =
        ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap();
    let headers =
        headers.iter().fold(OwnedHeaders::new(), |all, (key, value)| all.insert(Header { key, value: Some(*value) }));
    producer
        .send(BaseRecord::to(topic).key(key).payload(payload).headers(headers))
        .map_err(|(error, _)| error)
        .unwrap();
    producer.flush(Duration::from_mins(1)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_delivered_with_the_reason_and_settled() {
    let cluster = Cluster::start();
    let transport = cluster.transport("s.").await;
    let mut incoming = subscribe(&transport, "a", 10).await;
    send(&cluster.brokers, "s.orders", "k", b"{}", &[("type", "OrderPlaced"), ("trace", "7")]);
    let came = receive(&mut incoming, 1).await;
    let unreadable = came[0].message.as_ref().expect_err("it is no message");
    assert_eq!(unreadable.problem, "the header message-id is missing");
    assert_eq!(unreadable.payload, b"{}");
    assert!(unreadable.headers.contains(&("trace".to_owned(), "7".to_owned())), "{:?}", unreadable.headers);
    incoming.settle(&[(came[0].tag, Settlement::Accept)]).await.unwrap();
    publish(&transport, vec![message(1)]).await;
    assert_eq!(take(&mut incoming, 1).await, [1]);
}

/// T-DEAD-1: also what is no message is given up in the end, and reaches the dead letters as it came.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_becomes_a_dead_letter_as_it_came() {
    let cluster = Cluster::start();
    let transport = cluster.transport("s.").await;
    let mut incoming = subscribe(&transport, "a", 10).await;
    let mut dead = transport.dead_letters("a", 10).await.unwrap().expect("there are dead letters");
    send(&cluster.brokers, "s.orders", "k", b"{}", &[("type", "OrderPlaced")]);
    let mut first = None;
    for _ in 0..=3 {
        let came = receive(&mut incoming, 1).await;
        incoming.settle(&[(came[0].tag, Settlement::Reject)]).await.unwrap();
        first.get_or_insert(came[0].message.clone());
    }
    let letter = receive(&mut dead, 1).await;
    assert_eq!(Some(letter[0].message.clone()), first);
    let info = letter[0].dead_letter.as_ref().expect("it is a dead letter");
    assert_eq!((info.queue.as_str(), info.reason.as_str(), info.deliveries), ("s.orders", "rejected", 4));
}

/// Long before the record is made.
const COMMITTED_AT: Timestamp = Timestamp(1_735_689_600_123_456);

/// The headers that a connector makes of the columns of the outbox, as `docs/cdc.md` configures it.
fn columns(id: String, event_type: &str, kind: &str, headers: &Headers, position: u32) -> Vec<(&'static str, String)> {
    vec![
        ("id", id),
        ("type", event_type.to_owned()),
        ("tenant", String::new()),
        ("kind", kind.to_owned()),
        ("headers", headers.encode()),
        ("position", position.to_string()),
        ("committed_at", COMMITTED_AT.to_string()),
    ]
}

/// What `docs/cdc.md` sends is received from a broker: a command of a service whose outbox a connector reads, and an event of a saga. What the
/// receiver sends goes to the same topics, and has this transport's headers.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_debezium_connector_sends_is_received() {
    let server = TansuServer::start().await.unwrap();
    let transport = KafkaTransport::connect_with(on_tansu(&server, "").debezium()).await.unwrap();
    let service = service_topic("payments");
    let topics = vec![service.clone(), "orders".into(), "placed_orders".into()];
    let subscription = Subscription { name: service.clone(), topics, prefetch: 10 };
    let mut incoming = transport.subscribe(subscription).await.unwrap();
    let (command, event) = (message(7), message(8));
    let headers = Headers { saga_key: Some("order/17".into()), step: Some("charge-card".into()), ..Headers::default() };
    let send = |topic: &str, payload: &[u8], columns: Vec<(&str, String)>| {
        let columns: Vec<(&str, &str)> = columns.iter().map(|(name, value)| (*name, value.as_str())).collect();
        send(&server.brokers(), topic, "order-17", payload, &columns);
    };
    send("outbox.event.payments", b"7", columns(command.id.to_string(), "charge-card", "command", &headers, 1));
    let came = take_one(&mut incoming).await;
    assert_eq!((came.id, came.kind, &came.topic), (command.id, MessageKind::Command, &service));
    assert_eq!((came.key.as_str(), &came.headers, came.payload.as_slice()), ("order-17", &headers, b"7".as_slice()));
    let event_columns = columns(event.id.to_string(), "OrderPlaced", "event", &Headers::default(), 2);
    send("outbox.event.placed_orders", b"8", event_columns);
    let came = take_one(&mut incoming).await;
    assert_eq!((came.id, came.kind, came.topic.as_str()), (event.id, MessageKind::Event, "placed_orders"));
    assert_eq!(came.committed_at, COMMITTED_AT);
    assert_eq!((came.key.as_str(), came.event_type.as_str()), ("order-17", "OrderPlaced"));
    publish(&transport, vec![message(9)]).await;
    assert_eq!(take_one(&mut incoming).await, message(9));
}

/// Receives and accepts one message.
async fn take_one(incoming: &mut Box<dyn Incoming>) -> Message {
    let came = receive(incoming, 1).await;
    accept(incoming, &came).await;
    came[0].message.clone().expect("it is a message")
}
