//! Whatever somebody writes or sends wrongly: one clear sentence, or one delivery that says what is wrong with it.

use lapin::BasicProperties;
use lapin::ExchangeKind;
use lapin::options::{ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use saga_amqp::{AmqpOptions, AmqpTransport, Topology};
use saga_core::transport::{MessageKind, Subscription, Transport as _, TransportError, TransportErrorKind};
use serde_json::json;

use crate::support::messages::{
    TOPIC, addressed, message, publish_until_confirmed, receive, receive_all, receive_unreadable, subscribe,
};
use crate::support::{Broker, unique_prefix};

/// A virtual host with a user of its own, whose permissions are these: to configure, to write and to read.
async fn host(broker: &Broker, permissions: Option<[&str; 3]>) -> (String, String) {
    let name = unique_prefix().trim_end_matches('.').to_owned();
    let management = Broker::management();
    management.put(&format!("vhosts/{name}"), &json!({})).await.unwrap();
    let user = json!({ "password": "hunter2", "tags": "" });
    management.put(&format!("users/{name}"), &user).await.unwrap();
    if let Some([configure, write, read]) = permissions {
        let body = json!({ "configure": configure, "write": write, "read": read });
        management.put(&format!("permissions/{name}/{name}"), &body).await.unwrap();
    }
    let address = broker.url.split(['@', '/']).nth(3).unwrap();
    (name.clone(), format!("amqp://{name}:hunter2@{address}/{name}"))
}

async fn forget(name: &str) {
    for path in [format!("vhosts/{name}"), format!("users/{name}")] {
        Broker::management().delete(&path).await.unwrap();
    }
}

fn check(error: &TransportError, kind: TransportErrorKind, says: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert!(says.iter().all(|part| text.contains(part)), "{text:?} does not say all of {says:?}");
    assert!(!text.contains("hunter2") && !text.contains('\n'), "{text:?} is not one sentence without a password");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_address_is_one_sentence() {
    use TransportErrorKind::{Refused, Unavailable};
    let broker = Broker::shared();
    let address = broker.url.split(['@', '/']).nth(3).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, kind, says) in [
        (format!("amqp://guest:hunter2@{address}/%2f"), Refused, ["as \"guest\"", "check the user and the password"]),
        (format!("amqp://guest:guest@{address}/nowhere"), Refused, ["\"nowhere\"", "check that the virtual host"]),
        (
            format!("amqp://guest:hunter2@{free}/%2f"),
            Unavailable,
            ["cannot connect to the broker at 127.0.0.1:", "refused"],
        ),
        ("postgres://me:hunter2@db/shop".to_owned(), Refused, ["\"postgres\" is no scheme", "write amqp://"]),
        ("localhost".to_owned(), Refused, ["has no scheme", "write amqp://"]),
        ("amqp://me:hunter2@localhost:port/".to_owned(), Refused, ["cannot be read", "write amqp://"]),
        ("amqps://me:hunter2@localhost/".to_owned(), Refused, ["features", "tls-ring"]),
    ] {
        if url.starts_with("amqps")
            && cfg!(any(feature = "tls-ring", feature = "tls-aws-lc-rs", feature = "tls-native"))
        {
            continue;
        }
        check(&AmqpTransport::connect(&url).await.expect_err(&url), kind, &says);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_one_sentence() {
    let broker = Broker::shared();
    let (none, url) = host(&broker, None).await;
    let error = AmqpTransport::connect(&url).await.expect_err("there is no permission");
    check(&error, TransportErrorKind::Refused, &[&none, "the user may use it"]);
    let (reads, url) = host(&broker, Some(["", "", ".*"])).await;
    let error = AmqpTransport::connect(&url).await.expect_err("nothing may be declared");
    check(
        &error,
        TransportErrorKind::Refused,
        &["declare the exchange \"saga.events\"", "give the user the permissions"],
    );
    for name in [none, reads] {
        forget(&name).await;
    }
}

/// Publishes events, and commands that the broker does not take: each command is an error of its own.
async fn check_that_only_commands_are_nacked(transport: &AmqpTransport, says: &[&str]) {
    let command = |number| addressed(MessageKind::Command, number);
    let messages = vec![message(1), command(2), message(4), command(5), command(8), message(10)];
    let answers = transport.publish(messages).await;
    for (index, answer) in answers.iter().enumerate() {
        if [0, 2, 5].contains(&index) {
            assert!(answer.is_ok(), "{index}: {answers:?}");
        } else {
            check(answer.as_ref().unwrap_err(), TransportErrorKind::Nacked, says);
        }
    }
    transport.reachable().await.expect("other messages can be sent");
}

/// T-PUB-2: the broker closes the channel, and the other messages of the call are sent again.
#[tokio::test(flavor = "multi_thread")]
async fn message_without_permission_is_refused_alone() {
    let broker = Broker::shared();
    let (name, url) = host(&broker, Some([".*", ".*events$", ".*"])).await;
    let transport = AmqpTransport::connect(&url).await.unwrap();
    check_that_only_commands_are_nacked(&transport, &["saga.services", "give the user the permissions"]).await;
    forget(&name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn message_to_a_missing_exchange_is_refused_alone() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let (_connection, channel) = broker.channel().await;
    let options = ExchangeDeclareOptions { durable: true, ..Default::default() };
    let events = format!("{prefix}events");
    channel.exchange_declare(events.into(), ExchangeKind::Topic, options, FieldTable::default()).await.unwrap();
    let options = AmqpOptions::new(&broker.url).prefix(&prefix).topology(Topology::None);
    let transport = AmqpTransport::connect_with(options).await.unwrap();
    check_that_only_commands_are_nacked(&transport, &[&format!("{prefix}services"), "Topology::Declare"]).await;
}

/// The limit is of all connections of the user, so the messages are as good as any.
#[tokio::test(flavor = "multi_thread")]
async fn limit_of_channels_makes_the_broker_unavailable() {
    let broker = Broker::shared();
    let (name, url) = host(&broker, Some([".*", ".*", ".*"])).await;
    let transport = AmqpTransport::connect(&url).await.unwrap();
    let (management, limit) = (Broker::management(), format!("user-limits/{name}/max-channels"));
    management.put(&limit, &json!({ "value": 0 })).await.unwrap();
    let answers = transport.publish(vec![message(1)]).await;
    check(answers[0].as_ref().unwrap_err(), TransportErrorKind::Unavailable, &["open a channel", "raise the limit"]);
    management.delete(&limit).await.unwrap();
    publish_until_confirmed(&transport, vec![message(1)]).await;
    forget(&name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_with_other_arguments_is_one_sentence() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let (_connection, channel) = broker.channel().await;
    let options = QueueDeclareOptions { durable: true, ..Default::default() };
    channel.queue_declare(format!("{prefix}a").into(), options, FieldTable::default()).await.unwrap();
    let options = AmqpOptions::new(&broker.url).prefix(&prefix);
    let transport = AmqpTransport::connect_with(options.clone()).await.unwrap();
    let subscription = Subscription { name: "a".into(), topics: vec![TOPIC.into()], prefetch: 1 };
    let error = transport.subscribe(subscription.clone()).await.err().expect("the queue is a classic one");
    check(
        &error,
        TransportErrorKind::Refused,
        &[&format!("the queue \"{prefix}a\""), "inequivalent arg", "Topology::Check"],
    );
    let transport = AmqpTransport::connect_with(options.topology(Topology::Check)).await.unwrap();
    transport.subscribe(subscription).await.expect("what is there is taken over");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named_and_what_is_there_is_taken() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let options = AmqpOptions::new(&broker.url).prefix(&prefix);
    let look = options.clone().topology(Topology::Check);
    let error = AmqpTransport::connect_with(look.clone()).await.expect_err("there is nothing yet");
    check(
        &error,
        TransportErrorKind::Refused,
        &[&format!("find the exchange \"{prefix}events\""), "Topology::Declare"],
    );
    let declares = AmqpTransport::connect_with(options.clone()).await.unwrap();
    drop(subscribe(&declares, "a", 1).await);
    for topology in [Topology::Check, Topology::None] {
        let transport = AmqpTransport::connect_with(options.clone().topology(topology)).await.unwrap();
        let mut incoming = subscribe(&transport, "a", 1).await;
        publish_until_confirmed(&transport, vec![message(1)]).await;
        receive_all(&mut incoming, [1].into()).await;
    }
    let transport = AmqpTransport::connect_with(look).await.unwrap();
    let other = Subscription { name: "b".into(), topics: vec![TOPIC.into()], prefetch: 1 };
    let error = transport.subscribe(other).await.err().expect("there is no such queue");
    check(&error, TransportErrorKind::Refused, &[&format!("find the queue \"{prefix}b.dead-letters\"")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_topics_that_cannot_be_are_refused() {
    let broker = Broker::shared();
    let error = AmqpTransport::connect_with(AmqpOptions::new(&broker.url).prefix("a\"b")).await.expect_err("a quote");
    check(&error, TransportErrorKind::Refused, &["the prefix", "contains"]);
    let transport = AmqpTransport::connect_with(AmqpOptions::new(&broker.url).prefix(unique_prefix())).await.unwrap();
    for (name, topic, says) in [("", "orders", "needs a name"), ("a", "orders.*", "a pattern to the broker")] {
        let subscription = Subscription { name: name.into(), topics: vec![topic.into()], prefetch: 1 };
        let error = transport.subscribe(subscription).await.err().expect(says);
        check(&error, TransportErrorKind::Refused, &[says]);
    }
    let mut large = message(1);
    large.key = "x".repeat(5000);
    let mut incoming = subscribe(&transport, "a", 10).await;
    let answers = transport.publish(vec![large, message(2)]).await;
    check(answers[0].as_ref().unwrap_err(), TransportErrorKind::Refused, &["the ordering key has 5000 bytes"]);
    assert!(answers[1].is_ok(), "{answers:?}");
    receive_all(&mut incoming, [2].into()).await;
}

fn good() -> BasicProperties {
    let mut headers = FieldTable::default();
    headers.insert("saga-key".into(), AMQPValue::LongString("k".into()));
    headers.insert("saga-committed-at".into(), AMQPValue::LongLongInt(1_735_689_600_000_000));
    let id = uuid::Uuid::from_u128(77).to_string();
    BasicProperties::default().with_message_id(id.into()).with_type("OrderPlaced".into()).with_headers(headers)
}

fn with(name: &str, value: AMQPValue) -> BasicProperties {
    let mut headers = good().headers().clone().unwrap();
    headers.insert(name.into(), value);
    good().with_headers(headers)
}

#[tokio::test(flavor = "multi_thread")]
async fn g8_what_is_no_message_is_handed_on_with_its_reason() {
    const BODY_BYTES_MAX: usize = 1000;
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let options = AmqpOptions::new(&broker.url).prefix(&prefix).payload_bytes_max(BODY_BYTES_MAX);
    let transport = AmqpTransport::connect_with(options).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 4).await;
    let large_header = AMQPValue::LongString("x".repeat(100_000).as_str().into());
    let mut forged = FieldTable::default();
    forged.insert("x-death".into(), AMQPValue::LongString("forged".into()));
    forged.insert("saga-step".into(), AMQPValue::FieldArray(FieldArray::default()));
    let bad = [
        (BasicProperties::default(), "message-id is missing"),
        (BasicProperties::default().with_expiration("600000".into()), "message-id is missing"),
        (good().with_message_id("no-uuid".into()), "no UUID"),
        (good().with_headers(FieldTable::default()), "saga-key is missing"),
        (good().with_headers(forged), "saga-key is missing"),
        (with("saga-key", AMQPValue::LongLongInt(7)), "saga-key is of the type"),
        (with("saga-key", AMQPValue::LongString(vec![0xc3, 0x28].into())), "saga-key is not UTF-8"),
        (with("saga-tenant", AMQPValue::LongString("../other".into())), "saga-tenant is wrong"),
        (with("saga-tenant", AMQPValue::FieldTable(FieldTable::default())), "saga-tenant is of the type"),
        (with("saga-committed-at", AMQPValue::Double(1.5)), "saga-committed-at is of the type"),
        (with("saga-kind", AMQPValue::LongString("order".into())), "saga-kind is \"order\""),
        (with("saga-cause", AMQPValue::Boolean(true)), "saga-cause is of the type"),
        (with("saga-answer", AMQPValue::LongString("maybe".into())), "which is no answer"),
        (with("saga-correlation", AMQPValue::LongString("7".into())), "which is no message id"),
        (with("saga-key", large_header), "saga-key has 100000 bytes"),
    ];
    for (properties, _) in &bad {
        broker.publish(&transport, TOPIC, properties.clone(), b"{}").await;
    }
    let twenty_megabytes = vec![b' '; 20 << 20];
    broker.publish(&transport, TOPIC, good(), &twenty_megabytes).await;
    // Whatever was in front of it, a good message comes.
    publish_until_confirmed(&transport, vec![message(1)]).await;
    let (unreadable, _) = receive_unreadable(&mut incoming, bad.len() + 1).await;
    for (_, says) in &bad {
        assert!(unreadable.iter().any(|what| what.problem.contains(says)), "none says {says:?}: {unreadable:?}");
    }
    let large = unreadable.iter().find(|what| what.problem.contains("the body has 20971520 bytes"));
    assert_eq!(large.expect("the large body comes").payload.len(), 20 << 20, "it is handed on whole");
    assert_eq!(unreadable.iter().filter(|what| what.id.is_none()).count(), 3, "the others have an id");
    // None is left behind: a new receiver gets nothing of them.
    drop(incoming);
    let mut incoming = subscribe(&transport, "a", 4).await;
    publish_until_confirmed(&transport, vec![message(2)]).await;
    receive_all(&mut incoming, [2].into()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g8_what_is_no_message_and_is_not_settled_comes_again() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let transport = AmqpTransport::connect_with(AmqpOptions::new(&broker.url).prefix(&prefix)).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 4).await;
    broker.publish(&transport, TOPIC, BasicProperties::default(), b"garbage").await;
    let first = receive(&mut incoming, 1).await;
    let what = first[0].message.clone().expect_err("it is no message");
    drop(incoming);
    let mut incoming = subscribe(&transport, "a", 4).await;
    let (again, _) = receive_unreadable(&mut incoming, 1).await;
    // What it is told by stays the same: whoever keeps it as a dead letter keeps one.
    assert_eq!(again, [what]);
}
