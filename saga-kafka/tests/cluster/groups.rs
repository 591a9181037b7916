//! Who gets which partition, where a group begins, and what becomes of what a receiver has: on tansu, on which members may join at once.

use std::collections::BTreeSet;
use std::time::Duration;

use saga_core::transport::{Incoming, Message, MessageKind, Settlement, Subscription, Transport, service_topic};
use saga_kafka::KafkaTransport;
use saga_servers::TansuServer;

use crate::support::messages::{PATIENCE, accept, message, number, publish, receive, subscribe, take};
use crate::support::{Cluster, Place, on_tansu};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// How many a topic has that is created.
const PARTITIONS: i32 = 4;
const COUNT: u32 = 40;

/// Waits until the subscription of this transport has so many partitions.
async fn has_partitions(transport: &KafkaTransport, count: usize) {
    let has = async {
        loop {
            let health = transport.health();
            if health.subscriptions.iter().any(|subscription| subscription.partitions == count) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, has).await.unwrap_or_else(|_| panic!("no {count} partitions"));
}

/// T-SUB-1: each message goes to one of two processes, and both have some.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_the_partitions() {
    let place = Place::new().await;
    let (one, two) = (place.transport().await, place.transport().await);
    let mut first = subscribe(&one, "a", 100).await;
    let mut second = subscribe(&two, "a", 100).await;
    has_partitions(&two, 2).await;
    has_partitions(&one, 2).await;
    assert!(one.health().is_healthy(), "{:?}", one.health());
    publish(&one, (0..COUNT).map(message).collect()).await;
    let (mut came, mut share) = (Vec::new(), [0, 0]);
    while came.len() < COUNT as usize {
        let (index, numbers) = tokio::select! {
            numbers = take(&mut first, 1) => (0, numbers),
            numbers = take(&mut second, 1) => (1, numbers),
        };
        share[index] += numbers.len();
        came.extend(numbers);
    }
    came.sort_unstable();
    assert_eq!(came, (0..COUNT).collect::<Vec<u32>>(), "each came once");
    assert!(share.iter().all(|count| *count > 0), "{share:?}");
}

/// T-SUB-7 and T-SUB-8: what a receiver has of a partition that moves comes to the new owner, marked, and its tag is void.
#[tokio::test(flavor = "multi_thread")]
async fn the_tags_of_a_partition_that_moved_are_void() {
    let place = Place::new().await;
    let one = place.transport().await;
    let mut first = subscribe(&one, "a", 100).await;
    publish(&one, (0..COUNT).map(message).collect()).await;
    let held = receive(&mut first, COUNT as usize).await;
    assert!(held.iter().all(|delivery| !delivery.redelivered), "it is the first time");
    let two = place.transport().await;
    let mut second = subscribe(&two, "a", 100).await;
    has_partitions(&two, 2).await;
    let moved = receive(&mut second, 1).await;
    assert!(moved[0].redelivered);
    // The first receiver accepts all that it ever had, and thereby only what is still its own.
    accept(&mut first, &held).await;
    second.settle(&[(moved[0].tag, Settlement::Reject)]).await.unwrap();
    let mut seen = BTreeSet::new();
    let again = loop {
        let came = receive(&mut second, 1).await;
        accept(&mut second, &came).await;
        seen.insert(number(&came[0]));
        if number(&came[0]) == number(&moved[0]) {
            break came;
        }
    };
    assert!(again[0].redelivered, "{seen:?}");
    drop(first);
    one.close().await;
    has_partitions(&two, PARTITIONS as usize).await;
    publish(&two, vec![message(COUNT)]).await;
    while seen.insert(take(&mut second, 1).await[0]) && !seen.contains(&COUNT) {}
    assert!(seen.contains(&COUNT));
    assert!(seen.len() < COUNT as usize, "what the first receiver accepted of its own does not come again: {seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_group_begins_at_the_end_and_goes_on_where_it_was() {
    let place = Place::new().await;
    let transport = place.transport().await;
    publish(&transport, (0..10).map(message).collect()).await;
    let mut incoming = subscribe(&transport, "a", 100).await;
    publish(&transport, (10..20).map(message).collect()).await;
    let mut came = take(&mut incoming, 10).await;
    came.sort_unstable();
    assert_eq!(came, (10..20).collect::<Vec<u32>>());
    // Another process takes the place of the first, which left, and misses nothing.
    drop(incoming);
    transport.close().await;
    let second = place.transport().await;
    publish(&second, (20..30).map(message).collect()).await;
    let mut incoming = subscribe(&second, "a", 100).await;
    let mut came = take(&mut incoming, 10).await;
    came.sort_unstable();
    assert_eq!(came, (20..30).collect::<Vec<u32>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_new_processes_begin_together_and_miss_nothing() {
    let place = Place::new().await;
    let (one, two) = (place.transport().await, place.transport().await);
    publish(&one, (0..10).map(message).collect()).await;
    let (mut first, mut second) = tokio::join!(subscribe(&one, "a", 100), subscribe(&two, "a", 100));
    publish(&one, (10..20).map(message).collect()).await;
    let mut came = BTreeSet::new();
    while came.len() < 10 {
        tokio::select! {
            numbers = take(&mut first, 1) => came.extend(numbers),
            numbers = take(&mut second, 1) => came.extend(numbers),
        }
    }
    assert_eq!(came, (10..20).collect::<BTreeSet<u32>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_gets_all_that_was_sent_to_it() {
    let cluster = Cluster::start();
    cluster.create_topic("g.service_3Apayments", PARTITIONS).await;
    let transport = cluster.transport("g.").await;
    let topic = service_topic("payments");
    let command = |number| Message { kind: MessageKind::Command, topic: topic.clone(), ..message(number) };
    // The service was never started, and its topic is there.
    publish(&transport, vec![command(1)]).await;
    let subscription = Subscription { name: topic.clone(), topics: vec![topic.clone()], prefetch: 10 };
    let mut incoming = transport.subscribe(subscription).await.unwrap();
    publish(&transport, vec![command(2)]).await;
    let mut came = take(&mut incoming, 2).await;
    came.sort_unstable();
    assert_eq!(came, [1, 2]);
}

/// T-PUB-3 and T-SUB-4: reading stops while a receiver has enough, and goes on where it stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_receiver_gets_everything_in_order() {
    const MANY: u32 = 2_000;
    let place = Place::new().await;
    let transport = place.transport().await;
    let mut incoming = subscribe(&transport, "a", 2).await;
    let messages = (0..MANY).map(|number| Message { key: "k".into(), ..message(number) }).collect();
    publish(&transport, messages).await;
    let mut came = Vec::new();
    while came.len() < MANY as usize {
        came.extend(take(&mut incoming, 2).await);
    }
    assert_eq!(came, (0..MANY).collect::<Vec<u32>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_transport_receives_nothing_more() {
    let place = Place::new().await;
    let transport = place.transport().await;
    let mut incoming: Box<dyn Incoming> = subscribe(&transport, "a", 2).await;
    transport.close().await;
    let error = incoming.receive(1).await.expect_err("it is closed");
    assert_eq!(error.kind(), saga_core::transport::TransportErrorKind::Closed);
    assert!(transport.health().subscriptions.is_empty());
    // A runtime that subscribes again gets a member of its own.
    let mut again = subscribe(&transport, "a", 2).await;
    publish(&transport, vec![message(1)]).await;
    assert_eq!(take(&mut again, 1).await, [1]);
}

/// What the receiver has no room for stays where it is: it is not fetched again and again.
#[tokio::test(flavor = "multi_thread")]
async fn records_that_wait_for_room_are_fetched_once() {
    const LONG: usize = 1_000;
    const MANY: usize = 6_000;
    let server = TansuServer::start().await.expect("tansu starts");
    let transport = KafkaTransport::connect_with(on_tansu(&server, "once.")).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 20).await;
    let long = |number| Message { payload: vec![b'1'; LONG], ..message(number) };
    publish(&transport, (0..MANY as u32).map(long).collect()).await;
    let mut came = 0;
    while came < MANY {
        let deliveries = tokio::time::timeout(PATIENCE, incoming.receive(20)).await.expect("it comes in time").unwrap();
        accept(&mut incoming, &deliveries).await;
        came += deliveries.len();
    }
    let (read, sent) = (server.read_bytes() as usize, MANY * LONG);
    println!("{read} bytes were read of {sent}");
    assert!(read >= sent && read < 2 * sent, "{read} bytes were read of {sent}");
}
