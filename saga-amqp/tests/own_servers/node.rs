//! What needs a broker of the test's own: it is killed, or is short of memory. These tests run one after the other.

use std::collections::BTreeSet;
use std::time::Duration;

use saga_amqp::{AmqpOptions, AmqpTransport, ConnectionState, Unrouted};
use saga_core::transport::{Transport as _, TransportErrorKind};
use saga_servers::RabbitMqServer;

use crate::support::messages::{message, publish_until_confirmed, receive_all, receive_until, subscribe};
use crate::support::wait::{PATIENCE, until_holds};

/// Nodes are started one at a time: each takes a core for ten seconds.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn options(node: &RabbitMqServer) -> AmqpOptions {
    AmqpOptions::new(node.url())
        .unavailable_timeout(Duration::from_millis(500))
        .confirm_timeout(Duration::from_secs(2))
        .reconnect_delay_max(Duration::from_millis(500))
}

#[tokio::test(flavor = "multi_thread")]
async fn g4_a_killed_broker_loses_nothing_that_it_confirmed() {
    const ROUNDS: u32 = 2;
    const MESSAGES: u32 = 300;
    let _alone = ALONE.lock().await;
    let mut node = RabbitMqServer::start().await.unwrap();
    let transport = AmqpTransport::connect_with(options(&node)).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 50).await;
    let declared_at = tokio::time::Instant::now();
    while declared_at.elapsed() < RabbitMqServer::QUEUE_SETTLING_TIME {
        publish_until_confirmed(&transport, vec![message(u32::MAX)]).await;
        receive_all(&mut incoming, [u32::MAX].into()).await;
    }
    for round in 0..ROUNDS {
        let numbers: BTreeSet<u32> = (round * MESSAGES..(round + 1) * MESSAGES).collect();
        let messages: Vec<_> = numbers.iter().copied().map(message).collect();
        let sending = async {
            for messages in messages.chunks(20) {
                publish_until_confirmed(&transport, messages.to_vec()).await;
            }
        };
        let receiving = async {
            // Some have come, so the broker dies while messages are on their way in and out.
            let (mut missing, some) = (numbers.clone(), numbers.len() - 10);
            receive_until(&mut incoming, &mut missing, some).await;
            node.kill().await.unwrap();
            until_holds("the loss", || !transport.health().is_healthy()).await;
            node.restart().await.unwrap();
            receive_until(&mut incoming, &mut missing, 0).await;
        };
        tokio::join!(sending, receiving);
        until_holds("the recovery", || transport.health().is_healthy()).await;
    }
}

/// The connection itself is watched: neither a publish nor a heartbeat has to fail first, so this takes far less than the
/// two seconds that an operator may wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_transport_that_sends_nothing_sees_that_its_broker_is_gone() {
    let _alone = ALONE.lock().await;
    let mut node = RabbitMqServer::start().await.unwrap();
    let transport = AmqpTransport::connect_with(options(&node)).await.unwrap();
    assert!(transport.health().is_healthy());
    let killed_at = tokio::time::Instant::now();
    node.kill().await.unwrap();
    // The state is that of the connection itself; the task that keeps it says why a moment later.
    until_holds("the loss, and why", || {
        let health = transport.health().publisher;
        let is_lost = matches!(health.state, ConnectionState::Reconnecting { .. });
        is_lost && health.last_error.is_some_and(|error| !error.is_empty())
    })
    .await;
    println!("seen after {:?}", killed_at.elapsed());
    assert!(!transport.health().is_healthy());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_the_broker_cannot_serve_is_named_and_serves_again_once_it_is_deleted() {
    let _alone = ALONE.lock().await;
    let node = RabbitMqServer::start().await.unwrap();
    let transport = AmqpTransport::connect_with(options(&node).unrouted(Unrouted::Refuse)).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 10).await;
    publish_until_confirmed(&transport, vec![message(1)]).await;
    receive_all(&mut incoming, [1].into()).await;
    // So a crash leaves a queue that was declared a moment before: known by its name, and kept nowhere.
    node.control(&["eval", "ra:force_delete_server(quorum_queues, {'%2F_saga.a', node()})."]).await.unwrap();
    node.control(&["close_all_connections", "as in a crash"]).await.unwrap();
    let received = tokio::time::timeout(PATIENCE, incoming.receive(1)).await;
    let error = received.expect("it is told in time").unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Refused, "{error}");
    let says = ["cannot receive from the queue \"saga.a\": INTERNAL_ERROR", "does not work until it is deleted"];
    assert!(says.iter().all(|part| error.to_string().contains(part)), "{error}");
    let answers = transport.publish(vec![message(2)]).await;
    assert!(answers[0].is_err(), "nothing is confirmed that no queue took");
    node.management().unwrap().delete("queues/%2F/saga.a").await.unwrap();
    // Whoever receives declares it again.
    let receiving = receive_all(&mut incoming, [2].into());
    tokio::join!(publish_until_confirmed(&transport, vec![message(2)]), receiving);
    until_holds("the recovery", || transport.health().is_healthy()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_short_of_memory_holds_publishers_back_and_loses_nothing() {
    let _alone = ALONE.lock().await;
    let node = RabbitMqServer::start().await.unwrap();
    let transport = AmqpTransport::connect_with(options(&node)).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 10).await;
    publish_until_confirmed(&transport, vec![message(1)]).await;
    receive_all(&mut incoming, [1].into()).await;
    node.control(&["set_vm_memory_high_watermark", "absolute", "1"]).await.unwrap();
    // The broker tells whoever publishes; what was under way then is unknown.
    let answers = transport.publish(vec![message(2)]).await;
    assert_eq!(answers[0].as_ref().unwrap_err().kind(), TransportErrorKind::Unknown, "{answers:?}");
    let is_blocked = || matches!(transport.health().publisher.state, ConnectionState::Blocked { .. });
    until_holds("the alarm", is_blocked).await;
    // From then on nothing is handed over, and the answer comes in time.
    let answers = transport.publish(vec![message(3)]).await;
    let error = answers.into_iter().next().unwrap().unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("short of memory"), "{error}");
    // One that waits is sent as soon as the alarm ends.
    let patient = AmqpTransport::connect_with(options(&node).unavailable_timeout(Duration::from_secs(30))).await;
    assert!(patient.is_ok(), "one can connect to a broker that is short of memory");
    node.control(&["set_vm_memory_high_watermark", "absolute", "512MB"]).await.unwrap();
    publish_until_confirmed(&transport, vec![message(2), message(3)]).await;
    receive_all(&mut incoming, [2, 3].into()).await;
    until_holds("health", || transport.health().is_healthy()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_the_broker_refuses_is_alone() {
    let _alone = ALONE.lock().await;
    let node = RabbitMqServer::start().await.unwrap();
    node.control(&["eval", "application:set_env(rabbit, max_message_size, 100000)."]).await.unwrap();
    // The refusal ends the channel, and the others are sent again on another one.
    let long = Duration::from_secs(30);
    let patient = options(&node).unavailable_timeout(long).confirm_timeout(long);
    let transport = AmqpTransport::connect_with(patient).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 10).await;
    let mut messages: Vec<_> = (1..=5).map(message).collect();
    messages[2].payload = vec![b'1'; 200_000];
    let answers = transport.publish(messages).await;
    let accepted: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(accepted, [true, true, false, true, true], "{answers:?}");
    let error = answers[2].as_ref().unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("larger than"), "{error}");
    receive_all(&mut incoming, [1, 2, 4, 5].into()).await;
}
