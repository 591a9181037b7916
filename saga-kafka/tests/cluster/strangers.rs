//! What others send: records that are no messages, and those of a Debezium connector.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer as _, ThreadedProducer};
use saga_core::transport::{Headers, MessageKind, Settlement, Subscription, Transport, service_topic};
use saga_kafka::KafkaTransport;

use crate::support::messages::{message, publish, receive, subscribe, take};
use crate::support::{Cluster, options};

/// Sends a record as a stranger does, and waits until the cluster has it.
fn send(cluster: &Cluster, topic: &str, key: &str, payload: &[u8], headers: &[(&str, &str)]) {
    let producer: ThreadedProducer<DefaultProducerContext> =
        ClientConfig::new().set("bootstrap.servers", &cluster.brokers).create().unwrap();
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
    send(&cluster, "s.orders", "k", b"{}", &[("type", "OrderPlaced"), ("trace", "7")]);
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
    send(&cluster, "s.orders", "k", b"{}", &[("type", "OrderPlaced")]);
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

/// What `docs/cdc.md` sends is received: a command of a service whose outbox a connector reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_a_debezium_connector_is_received() {
    let cluster = Cluster::start();
    let transport = KafkaTransport::connect_with(options(&cluster, "s.").debezium()).await.unwrap();
    let topic = service_topic("payments");
    let subscription = Subscription { name: topic.clone(), topics: vec![topic.clone()], prefetch: 10 };
    let mut incoming = transport.subscribe(subscription).await.unwrap();
    let sent = message(7);
    let headers = Headers { saga_key: Some("order/17".into()), step: Some("charge-card".into()), ..Headers::default() };
    let headers_column = headers.encode();
    let columns = [
        ("id", sent.id.to_string()),
        ("type", "charge-card".to_owned()),
        ("tenant", String::new()),
        ("kind", "command".to_owned()),
        ("headers", headers_column),
        ("position", "1".to_owned()),
    ];
    let columns: Vec<(&str, &str)> = columns.iter().map(|(name, value)| (*name, value.as_str())).collect();
    send(&cluster, "outbox.event.payments", "order-17", b"7", &columns);
    let came = receive(&mut incoming, 1).await;
    let read = came[0].message.as_ref().expect("it is a message");
    assert_eq!((read.id, read.kind, &read.topic), (sent.id, MessageKind::Command, &topic));
    assert_eq!((read.key.as_str(), &read.headers, read.payload.as_slice()), ("order-17", &headers, b"7".as_slice()));
}
