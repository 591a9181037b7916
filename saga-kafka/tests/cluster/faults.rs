//! Brokers that are down, that answer with errors, and coordinators that move.

use std::collections::BTreeSet;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::mocking::MockCoordinator;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr as Code};
use rdkafka::{ClientConfig, Message as _, Offset, TopicPartitionList};
use saga_core::transport::{Message, Transport, TransportErrorKind};
use saga_kafka::{KafkaOptions, KafkaTransport};

use crate::support::messages::{PATIENCE, accept, message, publish, receive, subscribe, take};
use crate::support::{Cluster, options};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

const COUNT: u32 = 20;

/// Reads a topic from its beginning until every number has come.
fn read_all(brokers: &str, topic: &str, mut missing: BTreeSet<u32>) {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("group.id", "none").set("enable.auto.commit", "false");
    let consumer: BaseConsumer = config.create().unwrap();
    let mut places = TopicPartitionList::new();
    places.add_partition_range(topic, 0, 3);
    places.set_all_offsets(Offset::Beginning).unwrap();
    consumer.assign(&places).unwrap();
    while !missing.is_empty() {
        if let Some(Ok(record)) = consumer.poll(Duration::from_millis(100)) {
            missing.remove(&String::from_utf8_lossy(record.payload().unwrap()).parse().unwrap());
        }
    }
}

/// Waits until a group has committed that it passed so many records of a topic.
async fn has_passed(cluster: &Cluster, group: &'static str, topic: &'static str, count: i64) {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &cluster.brokers).set("group.id", group);
    let asking = tokio::task::spawn_blocking(move || {
        let consumer: BaseConsumer = config.create().unwrap();
        loop {
            let mut places = TopicPartitionList::new();
            places.add_partition_range(topic, 0, 3);
            let committed = consumer.committed_offsets(places, Duration::from_secs(10)).unwrap();
            let offsets = committed.elements().into_iter().filter_map(|place| place.offset().to_raw());
            if offsets.filter(|offset| *offset > 0).sum::<i64>() >= count {
                return;
            }
        }
    });
    tokio::time::timeout(PATIENCE, asking).await.expect("it is committed in time").unwrap();
}

/// Waits until it holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !holds().await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect(what);
}

/// Times so short that a cluster that is away is noticed soon.
fn impatient(cluster: &Cluster) -> KafkaOptions {
    options(cluster, "f.").publish_timeout(Duration::from_secs(1)).connect_timeout(Duration::from_secs(1))
}

/// Publishes these until some are confirmed, and returns the others. On a busy machine the time limit may end before any is.
async fn published_beside_a_broker_that_is_down(transport: &KafkaTransport, messages: &[Message]) -> Vec<Message> {
    loop {
        let answers = transport.publish(messages.to_vec()).await;
        if answers.iter().any(Result::is_ok) {
            let open = messages.iter().zip(answers).filter(|(_, answer)| answer.is_err());
            return open.map(|(message, _)| message.clone()).collect();
        }
    }
}

/// The mock elects no other leader for a partition, so what is for a broker that is down waits until it is up again.
#[tokio::test(flavor = "multi_thread")]
async fn g8_messages_are_delivered_although_brokers_come_and_go() {
    let cluster = Cluster::start();
    let transport = KafkaTransport::connect_with(impatient(&cluster)).await.unwrap();
    // Read without a group: a mock whose brokers come and go ends the process when a member joins.
    let (mut missing, brokers) = (BTreeSet::new(), cluster.brokers.clone());
    for (round, broker) in [2, 3, 2, 3].into_iter().enumerate() {
        let first = u32::try_from(round).unwrap() * COUNT;
        let messages: Vec<Message> = (first..first + COUNT).map(message).collect();
        missing.extend(first..first + COUNT);
        cluster.order(move |cluster| cluster.broker_down(broker)).await.unwrap();
        let taken = published_beside_a_broker_that_is_down(&transport, &messages);
        let open = tokio::time::timeout(PATIENCE, taken).await.expect("the other brokers take theirs");
        cluster.order(move |cluster| cluster.broker_up(broker)).await.unwrap();
        publish(&transport, open).await;
    }
    let reading = tokio::task::spawn_blocking(move || read_all(&brokers, "f.orders", missing));
    tokio::time::timeout(PATIENCE, reading).await.expect("every message is there").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_away_takes_nothing_and_is_found_again() {
    let cluster = Cluster::start();
    let transport = KafkaTransport::connect_with(impatient(&cluster)).await.unwrap();
    publish(&transport, vec![message(1)]).await;
    cluster.order(|cluster| (1..=3).for_each(|broker| cluster.broker_down(broker).unwrap())).await;
    // The first message may be under way; later ones are not taken at all, and the outbox is left to other processes.
    let answers = transport.publish(vec![message(2)]).await;
    assert_eq!(answers[0].as_ref().unwrap_err().kind(), TransportErrorKind::Unknown, "{answers:?}");
    until("it is noticed", async || transport.reachable().await.is_err()).await;
    let answers = transport.publish(vec![message(3)]).await;
    assert_eq!(answers[0].as_ref().unwrap_err().kind(), TransportErrorKind::Unavailable, "{answers:?}");
    assert!(!transport.health().is_healthy());
    cluster.order(|cluster| (1..=3).for_each(|broker| cluster.broker_up(broker).unwrap())).await;
    until("it is found again", async || transport.reachable().await.is_ok()).await;
    publish(&transport, vec![message(4)]).await;
    // On a busy machine the message was sent again, and a look at the cluster may have failed beside it.
    until("it is healthy again", async || transport.health().is_healthy()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_connects_where_no_cluster_is() {
    let options = KafkaOptions::new("127.0.0.1:1").connect_timeout(Duration::from_millis(300));
    let error =
        KafkaTransport::connect_with(options.property("sasl.password", "hunter2")).await.expect_err("no cluster");
    assert_eq!(error.kind(), TransportErrorKind::Unavailable);
    assert!(!error.to_string().contains("hunter2"), "{error}");
    let fixed = KafkaOptions::new("127.0.0.1:1").property("enable.idempotence", "false");
    let error = KafkaTransport::connect_with(fixed).await.expect_err("the guarantees rest on it");
    assert_eq!(error.kind(), TransportErrorKind::Refused);
    assert!(error.to_string().contains("enable.idempotence cannot be set"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_broker_refuses_for_a_while_is_sent_again_once() {
    let cluster = Cluster::start();
    let transport = cluster.transport("f.").await;
    let mut incoming = subscribe(&transport, "a", 100).await;
    let errors = [Code::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, Code::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT];
    cluster.order(move |cluster| cluster.request_errors(RDKafkaApiKey::Produce, &errors)).await;
    let messages: Vec<Message> = (0..10).map(|number| Message { key: "k".into(), ..message(number) }).collect();
    let answers = transport.publish(messages).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(take(&mut incoming, 10).await, (0..10).collect::<Vec<u32>>(), "each once, and in their order");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_a_broker_refuses_for_good_is_alone() {
    let cluster = Cluster::start();
    let transport = cluster.transport("f.").await;
    publish(&transport, vec![message(1)]).await;
    let error = [Code::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE];
    cluster.order(move |cluster| cluster.request_errors(RDKafkaApiKey::Produce, &error)).await;
    let answers = transport.publish(vec![message(2)]).await;
    let error = answers[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Refused);
    assert!(error.to_string().contains("raise `max.message.bytes`"), "{error}");
    let longer = Message { payload: vec![0; 1 << 20], ..message(3) };
    let answers = transport.publish(vec![longer, message(4)]).await;
    assert_eq!(answers[0].as_ref().unwrap_err().kind(), TransportErrorKind::Refused);
    assert!(answers[1].is_ok(), "{answers:?}");
}

/// T-SUB-2: what was accepted is committed in the end, also where the cluster does not take a commit at first.
#[tokio::test(flavor = "multi_thread")]
async fn commits_that_fail_are_made_again() {
    let cluster = Cluster::start();
    let transport = cluster.transport("f.").await;
    let mut incoming = subscribe(&transport, "a", 100).await;
    publish(&transport, (0..6).map(message).collect()).await;
    let came = receive(&mut incoming, 6).await;
    let errors = [
        Code::RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
        Code::RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
        Code::RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
        Code::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
    ];
    cluster.order(move |cluster| cluster.request_errors(RDKafkaApiKey::OffsetCommit, &errors)).await;
    accept(&mut incoming, &came[..5]).await;
    // The sixth is the last of its partition, so five records are passed in the end.
    has_passed(&cluster, "f.a", "f.orders", 5).await;
    drop(incoming);
    transport.close().await;
    let second = cluster.transport("f.").await;
    let mut incoming = subscribe(&second, "a", 100).await;
    let again = receive(&mut incoming, 1).await;
    assert_eq!(again[0].message, came[5].message);
    assert!(again[0].redelivered);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_follows_its_coordinator() {
    let cluster = Cluster::start();
    let transport = cluster.transport("f.").await;
    let mut incoming = subscribe(&transport, "a", 100).await;
    for number in 0..6 {
        publish(&transport, vec![message(number)]).await;
        let broker = i32::try_from(number % 3).unwrap() + 1;
        let group = || MockCoordinator::Group("f.a".to_owned());
        cluster.order(move |cluster| cluster.coordinator(group(), broker)).await.unwrap();
        while !take(&mut incoming, 1).await.contains(&number) {}
    }
}
