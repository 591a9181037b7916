//! What breaks on the way: connections that are cut, a queue that is deleted, an answer that never comes.

use std::collections::BTreeSet;
use std::time::Duration;

use lapin::Confirmation;
use lapin::options::{BasicGetOptions, BasicPublishOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use saga_amqp::{AmqpOptions, AmqpTransport, ConnectionState, Unrouted};
use saga_core::transport::{MessageKind, Settlement, Transport, TransportErrorKind};
use saga_servers::{Cut, Direction, FaultProxy, Traffic};

use crate::support::messages::{
    addressed, message, number, publish_until_confirmed, read, receive, receive_all, subscribe, subscribe_service,
};
use crate::support::wait::{until, until_holds};
use crate::support::{Broker, unique_prefix};

fn options(url: &str, prefix: &str) -> AmqpOptions {
    AmqpOptions::new(url).prefix(prefix).reconnect_delay_max(Duration::from_millis(200))
}

async fn connect(options: AmqpOptions) -> AmqpTransport {
    AmqpTransport::connect_with(options).await.expect("the broker can be connected to")
}

#[tokio::test(flavor = "multi_thread")]
async fn g4_a_connection_cut_at_any_byte_of_a_publish_loses_nothing() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let proxy = FaultProxy::start(&broker.url).await.unwrap();
    let sender = connect(options(proxy.url(), &prefix)).await;
    let receiver = connect(options(&broker.url, &prefix)).await;
    let mut incoming = subscribe(&receiver, "a", 100).await;
    let mut sent = BTreeSet::new();
    // A message is about 300 bytes on the wire, and its confirmation 21.
    let cuts = (1..330).step_by(9).map(|bytes| (bytes, Direction::ToServer));
    for (bytes, direction) in cuts.chain((1..=21).step_by(4).map(|bytes| (bytes, Direction::ToClient))) {
        let before = proxy.counts().cuts;
        let first = u32::try_from(sent.len()).unwrap();
        let messages: Vec<_> = (first..first + 3).map(message).collect();
        sent.extend(first..first + 3);
        proxy.cut(Cut::after(direction, bytes));
        publish_until_confirmed(&sender, messages).await;
        assert_eq!(proxy.counts().cuts, before + 1, "the connection was cut after {bytes} bytes, {direction:?}");
    }
    receive_all(&mut incoming, sent).await;
    until_holds("health", || sender.health().is_healthy()).await;
    assert!(sender.health().publisher.last_error.is_some(), "the last error is remembered");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_at_any_byte_of_an_acknowledgement_loses_nothing() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let proxy = FaultProxy::start(&broker.url).await.unwrap();
    let receiver = connect(options(proxy.url(), &prefix).delivery_limit(1000)).await;
    let sender = connect(options(&broker.url, &prefix)).await;
    let mut incoming = subscribe(&receiver, "a", 10).await;
    let acknowledgement_bytes = 21;
    for bytes in 0..=acknowledgement_bytes {
        let number = u32::try_from(bytes).unwrap();
        let sent = message(number);
        publish_until_confirmed(&sender, vec![sent.clone()]).await;
        let came = receive(&mut incoming, 1).await;
        let before = proxy.counts().cuts;
        proxy.cut(Cut::after(Direction::ToServer, bytes));
        // Whether it reached the broker is unknown, also to whoever settles.
        _ = incoming.settle(&[(came[0].tag, Settlement::Accept)]).await;
        until_holds("the cut", || proxy.counts().cuts > before).await;
        // The message comes again, or the next one does.
        let next = message(1000 + number);
        publish_until_confirmed(&sender, vec![next]).await;
        receive_all(&mut incoming, [1000 + number].into()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_of_a_lost_connection_settle_nothing() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let proxy = FaultProxy::start(&broker.url).await.unwrap();
    let transport = connect(options(proxy.url(), &prefix)).await;
    let mut incoming = subscribe(&transport, "a", 10).await;
    publish_until_confirmed(&transport, vec![message(1), message(2)]).await;
    let mut old = Vec::new();
    while old.len() < 2 {
        old.extend(receive(&mut incoming, 2).await);
    }
    proxy.cut_all();
    let mut again = Vec::new();
    while again.len() < 2 {
        again.extend(receive(&mut incoming, 2).await);
    }
    assert!(again.iter().all(|delivery| delivery.redelivered), "what comes again is marked");
    let tags: Vec<_> = old.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
    incoming.settle(&tags).await.expect("old tags are ignored");
    drop(incoming);
    let mut incoming = subscribe(&transport, "a", 10).await;
    receive_all(&mut incoming, [1, 2].into()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_deleted_while_consumed_is_made_again() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let transport = connect(options(&broker.url, &prefix).unrouted(Unrouted::Refuse)).await;
    let mut incoming = subscribe(&transport, "a", 10).await;
    publish_until_confirmed(&transport, vec![message(1)]).await;
    receive_all(&mut incoming, [1].into()).await;
    let (_connection, channel) = broker.channel().await;
    channel.queue_delete(format!("{prefix}a").into(), QueueDeleteOptions::default()).await.unwrap();
    let receiving = tokio::spawn(async move {
        receive_all(&mut incoming, [2].into()).await;
        incoming
    });
    // Refused for as long as no queue takes it, and then confirmed.
    publish_until_confirmed(&transport, vec![message(2)]).await;
    let incoming = receiving.await.unwrap();
    let health = transport.health();
    assert!(health.is_healthy(), "{health:?}");
    let error = health.subscriptions[0].connection.last_error.clone().unwrap_or_default();
    assert!(error.contains("queue was deleted"), "{error}");
    drop(incoming);
    assert!(transport.health().subscriptions.is_empty(), "a dropped subscription is not listed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_returned_message_is_a_failure_of_that_message_only() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let transport = connect(options(&broker.url, &prefix).unrouted(Unrouted::Refuse)).await;
    let mut incoming = subscribe(&transport, "a", 100).await;
    // Many, in every order: the library hands a returned message to whichever confirmation comes next.
    let mut messages: Vec<_> = (0..60).map(message).collect();
    for message in messages.iter_mut().filter(|message| message.id.0.as_u128() % 3 == 0) {
        message.topic = "nobody".into();
    }
    let expected: Vec<bool> = messages.iter().map(|message| message.topic != "nobody").collect();
    let routed = messages.iter().zip(&expected).filter(|(_, is_routed)| **is_routed);
    let routed: BTreeSet<u32> =
        routed.map(|(message, _)| String::from_utf8_lossy(&message.payload).parse().unwrap()).collect();
    for _ in 0..20 {
        let answers = transport.publish(messages.clone()).await;
        let accepted: Vec<bool> = answers.iter().map(Result::is_ok).collect();
        assert_eq!(accepted, expected);
        let error = answers.into_iter().find_map(Result::err).unwrap();
        assert_eq!(error.kind(), TransportErrorKind::NoRoute);
        assert!(error.to_string().contains("no queue takes the topic \"nobody\""), "{error}");
    }
    receive_all(&mut incoming, routed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_addressed_to_a_service_reaches_its_queue_alone_or_is_refused() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    // An event that nobody takes counts as sent here; a command to nobody does not.
    let transport = connect(options(&broker.url, &prefix)).await;
    let kinds = [MessageKind::Command, MessageKind::Undo, MessageKind::Reply];
    let sent: Vec<_> = (0..30).map(|number| addressed(kinds[number as usize % 3], number)).collect();
    let mut everything = subscribe(&transport, "a", 100).await;
    let (_connection, channel) = broker.channel().await;
    // Somebody who takes everything that is sent to the exchange of events hides no missing queue.
    let (queue, exchange) = (format!("{prefix}a"), format!("{prefix}events"));
    let bound = channel.queue_bind(
        queue.into(),
        exchange.into(),
        "#".into(),
        QueueBindOptions::default(),
        FieldTable::default(),
    );
    bound.await.unwrap();
    let mut all = sent.clone();
    all.push(message(100));
    let answers = transport.publish(all.clone()).await;
    assert!(answers[30].is_ok(), "{answers:?}");
    for answer in &answers[..30] {
        let error = answer.as_ref().expect_err("there is no such service");
        assert_eq!(error.kind(), TransportErrorKind::NoRoute);
        assert!(error.to_string().contains("no queue takes the topic \"service:payments\""), "{error}");
    }
    let mut incoming = subscribe_service(&transport, "payments", 100).await;
    publish_until_confirmed(&transport, all).await;
    let mut came = Vec::new();
    while came.len() < sent.len() {
        came.extend(receive(&mut incoming, 100).await);
    }
    assert_eq!(came.iter().map(read).collect::<Vec<_>>(), sent.iter().collect::<Vec<_>>(), "each as it was sent");
    for _ in 0..2 {
        let came = receive(&mut everything, 1).await;
        assert_eq!(number(&came[0]), 100, "of what is addressed nothing comes to others");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_put_straight_into_the_queue_of_a_service_is_addressed_to_it() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let transport = connect(options(&broker.url, &prefix)).await;
    let mut incoming = subscribe_service(&transport, "payments", 10).await;
    let sent = addressed(MessageKind::Command, 1);
    publish_until_confirmed(&transport, vec![sent.clone()]).await;
    let (_connection, channel) = broker.channel().await;
    let queue = format!("{prefix}service:payments");
    let first = receive(&mut incoming, 1).await;
    // As the broker has it, through the exchange that has no name.
    drop(incoming);
    let taken = until("the return of what was not settled", async || {
        channel.basic_get(queue.as_str().into(), BasicGetOptions { no_ack: true }).await.unwrap()
    });
    let taken = taken.await.delivery;
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    let confirm = channel.basic_publish("".into(), queue.into(), options, &taken.data, taken.properties).await.unwrap();
    assert!(matches!(confirm.await.unwrap(), Confirmation::Ack(None)), "the queue takes it");
    let mut incoming = subscribe_service(&transport, "payments", 10).await;
    let again = receive(&mut incoming, 1).await;
    assert_eq!((read(&first[0]), read(&again[0])), (&sent, &sent));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_come_is_unknown_in_time() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let proxy = FaultProxy::start(&broker.url).await.unwrap();
    let limit = Duration::from_millis(300);
    let transport = connect(options(proxy.url(), &prefix).confirm_timeout(limit)).await;
    let mut incoming = subscribe(&connect(options(&broker.url, &prefix)).await, "a", 10).await;
    publish_until_confirmed(&transport, vec![message(0)]).await;
    receive_all(&mut incoming, [0].into()).await;
    proxy.set_traffic(Traffic::StallsIn(Direction::ToClient));
    let answers = transport.publish(vec![message(1)]).await;
    assert_eq!(answers[0].as_ref().unwrap_err().kind(), TransportErrorKind::Unknown, "{answers:?}");
    // It arrives all the same, perhaps behind a copy of the first, whose confirmation may have been late too.
    receive_all(&mut incoming, [1].into()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_stays_away_fails_a_publish_in_time_and_health_says_so() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let proxy = FaultProxy::start(&broker.url).await.unwrap();
    let limit = Duration::from_millis(300);
    let options = options(proxy.url(), &prefix).unavailable_timeout(limit);
    let transport = connect(options).await;
    let incoming = subscribe(&transport, "a", 10).await;
    proxy.set_traffic(Traffic::RefusesNew);
    proxy.cut_all();
    let is_lost = |state: &ConnectionState| matches!(state, ConnectionState::Reconnecting { .. });
    // Each of the two connections sees its own loss. A publish before that fails as well, and says something else. The
    // task that keeps the publisher's has seen its loss once it has tried to connect again.
    until_holds("the loss of both", || {
        let health = transport.health();
        let is_retried = matches!(health.publisher.state, ConnectionState::Reconnecting { attempts: 1.., .. });
        is_retried && is_lost(&health.subscriptions[0].connection.state)
    })
    .await;
    assert!(!transport.health().is_healthy());
    let answers = transport.publish(vec![message(1), message(2)]).await;
    for answer in answers {
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), TransportErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("the connection is lost"), "{error}");
    }
    let health = transport.health();
    assert!(is_lost(&health.publisher.state) && is_lost(&health.subscriptions[0].connection.state), "{health:?}");
    drop(incoming);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hosts_of_a_url_are_tried_in_turn() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    // As a frozen node it takes connections and says nothing.
    let frozen = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let frozen_at = frozen.local_addr().unwrap();
    let dead_at = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (access, place) = broker.url.split_once('@').unwrap();
    let bad = format!("{access}@{dead_at},{frozen_at}");
    let limit = Duration::from_secs(5);
    let begun = tokio::time::Instant::now();
    let transport = connect(options(&format!("{bad},{place}"), &prefix).connect_timeout(limit)).await;
    assert!(begun.elapsed() < 3 * limit, "{:?}", begun.elapsed());
    let mut incoming = subscribe(&transport, "a", 10).await;
    publish_until_confirmed(&transport, vec![message(1)]).await;
    receive_all(&mut incoming, [1].into()).await;
    let nowhere = AmqpTransport::connect_with(options(&format!("{bad}/%2F"), &prefix).connect_timeout(limit)).await;
    let error = nowhere.expect_err("no host is a broker");
    let (text, kind) = (error.to_string(), error.kind());
    assert_eq!(kind, TransportErrorKind::Unavailable, "{text}");
    let parts = ["none of 2 brokers can be used".to_owned(), dead_at.to_string(), frozen_at.to_string()];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    let password = access.rsplit_once(':').unwrap().1;
    assert!(!text.contains(&format!(":{password}@")), "{text}");
}

/// By how much longer a subscription lives each time, which takes a few milliseconds.
const LOOK: Duration = Duration::from_micros(50);

/// At every point at which it waits, and a while after: what was under way then may end in a receiver that nobody has.
#[tokio::test(flavor = "multi_thread")]
async fn g10_a_subscription_that_is_dropped_in_the_middle_leaves_no_receiver_behind() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let transport = connect(options(&broker.url, &prefix)).await;
    drop(subscribe(&transport, "a", 10).await);
    let mut dropped = 0;
    for looks in 1..200 {
        let subscribing = subscribe(&transport, "a", 10);
        dropped += usize::from(tokio::time::timeout(looks * LOOK, subscribing).await.is_err());
    }
    assert!(dropped > 0, "some were dropped while they waited");
    let (_connection, channel) = broker.channel().await;
    let queue = format!("{prefix}a");
    until("the end of the receivers", async || {
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let found = channel.queue_declare(queue.as_str().into(), passive, FieldTable::default()).await.unwrap();
        (found.consumer_count() == 0).then_some(())
    })
    .await;
}
