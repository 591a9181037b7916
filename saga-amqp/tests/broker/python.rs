//! A client in another language, written from `docs/wire.md`, is a first-class citizen.

use std::collections::BTreeSet;

use saga_amqp::{AmqpOptions, AmqpTransport};
use saga_core::key::Tenant;
use saga_core::store::{MessageId, Timestamp};
use saga_core::transport::{
    Answer, Delivery, Headers, Incoming, Message, MessageKind, Settlement, Transport as _, Unreadable, service_topic,
};
use serde_json::{Value, json};

use crate::support::messages::{message, publish_until_confirmed, read, receive, subscribe, subscribe_service};
use crate::support::{Broker, unique_prefix};

/// Runs the client, and answers the lines that it printed.
async fn run(broker: &Broker, prefix: &str, task: &[&str]) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/client.py");
    let mut command = tokio::process::Command::new(saga_servers::python_with_pika().unwrap());
    let output = command.arg(script).args([&broker.url, prefix]).args(task).output().await.unwrap();
    assert!(output.status.success(), "{task:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn connect(broker: &Broker, prefix: &str) -> AmqpTransport {
    AmqpTransport::connect_with(AmqpOptions::new(&broker.url).prefix(prefix)).await.unwrap()
}

async fn accept(incoming: &mut Box<dyn Incoming>, count: usize) -> Vec<Delivery> {
    let mut accepted = Vec::new();
    while accepted.len() < count {
        let came = receive(incoming, 100).await;
        let settled: Vec<_> = came.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
        // One that is lost with its connection comes again.
        _ = incoming.settle(&settled).await;
        accepted.extend(came);
    }
    accepted
}

#[tokio::test(flavor = "multi_thread")]
async fn python_sends_events_duplicates_garbage_and_forged_headers() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let transport = connect(&broker, &prefix).await;
    let mut incoming = subscribe(&transport, "a", 10).await;
    run(&broker, &prefix, &["send"]).await;
    let came = accept(&mut incoming, 10).await;
    let of = |number: u128| -> Vec<&Message> {
        came.iter()
            .filter_map(|delivery| delivery.message.as_ref().ok())
            .filter(|message| is(message, number))
            .collect()
    };
    assert_eq!(of(1).len(), 2, "a duplicate comes, and is told by its id");
    let first = of(1)[0];
    assert_eq!((first.topic.as_str(), first.key.as_str(), first.event_type.as_str()), ("orders", "k-1", "OrderPlaced"));
    assert_eq!((first.kind, &first.headers), (MessageKind::Event, &Headers::default()));
    assert_eq!(first.committed_at, Timestamp(1_735_689_600_000_001));
    assert_eq!(first.payload, br#"{"number":1}"#);
    assert_eq!(of(2)[0].tenant, Tenant::new("acme").unwrap());
    assert_eq!(of(2)[0].committed_at, Timestamp(1_735_689_600_000_000), "seconds are enough");
    assert_eq!(of(6).len(), 1, "what the broker's headers say is not believed");
    let unreadable: Vec<&Unreadable> = came.iter().filter_map(|delivery| delivery.message.as_ref().err()).collect();
    assert_eq!(unreadable.len(), 6, "{unreadable:?}");
    let says = |id: Option<u128>, part: &str| {
        let id = id.map(|id| MessageId(uuid::Uuid::from_u128(id)));
        let found = unreadable.iter().any(|what| what.id == id && what.problem.contains(part));
        assert!(found, "{id:?} {part}: {unreadable:?}");
    };
    says(Some(3), "saga-key is of the type");
    says(Some(4), "saga-tenant is of the type");
    says(Some(5), "saga-key is missing");
    says(Some(8), "type is missing");
    says(None, "message-id is missing");
    says(None, "no UUID");
}

fn is(message: &Message, number: u128) -> bool {
    message.id.0.as_u128() == number
}

#[tokio::test(flavor = "multi_thread")]
async fn python_sends_commands_and_reads_the_reply() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let transport = connect(&broker, &prefix).await;
    let mut incoming = subscribe_service(&transport, "payments", 10).await;
    run(&broker, &prefix, &["bind-service"]).await;
    run(&broker, &prefix, &["command"]).await;
    let came = accept(&mut incoming, 4).await;
    // With the headers, with the property in the place of one, a bad one, and an undo.
    let command = read(&came[0]);
    assert_eq!(command.kind, MessageKind::Command);
    assert_eq!((command.topic.as_str(), command.event_type.as_str()), ("service:payments", "charge-card"));
    let expected = Headers {
        saga_key: Some("order/17".into()),
        step: Some("charge-card".into()),
        reply_to: Some("python".into()),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        ..Headers::default()
    };
    assert_eq!(command.headers, expected);
    assert_eq!(read(&came[1]).headers.reply_to.as_deref(), Some("python"), "of the property");
    let problem = &came[2].message.as_ref().unwrap_err().problem;
    assert!(problem.contains("saga-kind is \"order\""), "{problem}");
    assert_eq!((read(&came[3]).kind, read(&came[3]).headers.answer), (MessageKind::Undo, Some(Answer::Done)));
    let reply = Message {
        kind: MessageKind::Reply,
        topic: service_topic("python"),
        event_type: "charge-card".into(),
        headers: Headers {
            service: Some("python".into()),
            reply_to: Some("payments".into()),
            correlation: Some(command.id),
            answer: Some(Answer::Rejected),
            ..command.headers.clone()
        },
        ..message(1)
    };
    publish_until_confirmed(&transport, vec![reply]).await;
    let lines = run(&broker, &prefix, &["receive-service", "1"]).await;
    assert_eq!(lines[0]["exchange"], format!("{prefix}services"));
    let id = command.id.to_string();
    for (name, value) in [
        ("routing_key", "service:python"),
        ("correlation_id", id.as_str()),
        ("reply_to", "payments"),
        ("type", "charge-card"),
    ] {
        assert_eq!(lines[0][name], value, "{name}");
    }
    let headers = json!({
        "saga-kind": "reply",
        "saga-key": "k-1",
        "saga-committed-at": message(1).committed_at.0,
        "x-idempotency-key": message(1).id.to_string(),
        "saga-cause": "order/17",
        "saga-step": "charge-card",
        "saga-service": "python",
        "saga-reply-to": "payments",
        "saga-correlation": id,
        "saga-answer": "rejected",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    assert_eq!(without_counts(&lines[0]["headers"]), headers);
}

#[tokio::test(flavor = "multi_thread")]
async fn python_reads_what_the_transport_publishes() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    run(&broker, &prefix, &["bind"]).await;
    let transport = connect(&broker, &prefix).await;
    let of_tenant = Message { tenant: Tenant::new("acme").unwrap(), key: "Größe".into(), ..message(2) };
    publish_until_confirmed(&transport, vec![message(1), of_tenant]).await;
    // The same declarations from both sides agree.
    drop(subscribe(&transport, "python", 1).await);
    let mut lines = run(&broker, &prefix, &["receive", "2"]).await;
    lines.sort_by_key(|line| line["body"].to_string());
    let id = |number| message(number).id.to_string();
    let expected = |number: u32, more: Value| {
        let mut headers = json!({
            "saga-committed-at": message(number).committed_at.0,
            "x-idempotency-key": id(number),
        });
        headers.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        headers
    };
    assert_eq!(without_counts(&lines[0]["headers"]), expected(1, json!({"saga-key": "k-1"})));
    assert_eq!(without_counts(&lines[1]["headers"]), expected(2, json!({"saga-key": "Größe", "saga-tenant": "acme"})));
    let first = &lines[0];
    assert_eq!(first["message_id"], format!("'{}'", id(1)));
    assert_eq!(first["exchange"], format!("{prefix}events"));
    for (name, value) in [
        ("routing_key", json!("orders")),
        ("type", json!("OrderPlaced")),
        ("content_type", json!("application/json")),
        ("delivery_mode", json!(2)),
        ("timestamp", json!(1_735_689_600)),
        ("body", json!("1")),
    ] {
        assert_eq!(first[name], value, "{name}");
    }
}

/// The headers without what a quorum queue adds.
fn without_counts(headers: &Value) -> Value {
    let mut headers = headers.clone();
    headers.as_object_mut().unwrap().retain(|name, _| !name.starts_with("x-delivery-") && name != "x-acquired-count");
    headers
}

/// Sends some messages and one among them that cannot be read; answers the numbers of those that came.
async fn receive_beside_the_unreadable(
    broker: &Broker,
    prefix: &str,
    transport: &AmqpTransport,
) -> (Box<dyn Incoming>, BTreeSet<u128>) {
    let mut incoming = subscribe(transport, "a", 10).await;
    run(broker, prefix, &["send-unreadable"]).await;
    let mut numbers = BTreeSet::new();
    while numbers.len() < 4 {
        numbers.extend(accept(&mut incoming, 1).await.iter().map(|delivery| read(delivery).id.0.as_u128()));
    }
    (incoming, numbers)
}

#[tokio::test(flavor = "multi_thread")]
async fn g8_what_cannot_even_be_read_is_given_up_and_holds_up_nothing_for_long() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    // Each connection that it breaks brings it nearer to being given up.
    let options = AmqpOptions::new(&broker.url).prefix(&prefix).delivery_limit(3);
    let transport = AmqpTransport::connect_with(options).await.unwrap();
    let (_incoming, numbers) = receive_beside_the_unreadable(&broker, &prefix, &transport).await;
    assert_eq!(numbers, [1, 3, 4, 5].into(), "the others came");
    let letters = run(&broker, &prefix, &["dead-letters", "a", "1"]).await;
    assert_eq!(letters[0]["body"], "unreadable");
    assert!(letters[0]["headers"]["x-death"].to_string().contains("delivery_limit"), "{letters:?}");
    assert!(transport.health().publisher.last_error.is_none(), "the publisher has a connection of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn g8_a_dead_letter_that_cannot_even_be_read_holds_up_no_other() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    let options = AmqpOptions::new(&broker.url).prefix(&prefix).delivery_limit(2);
    let transport = AmqpTransport::connect_with(options).await.unwrap();
    let (mut incoming, _) = receive_beside_the_unreadable(&broker, &prefix, &transport).await;
    let mut dead_letters = transport.dead_letters("a", 10).await.unwrap().unwrap();
    // Behind the one that breaks the connection of whoever receives it there is another.
    publish_until_confirmed(&transport, vec![message(9)]).await;
    for _ in 0..3 {
        let came = receive(&mut incoming, 1).await;
        incoming.settle(&[(came[0].tag, Settlement::Reject)]).await.unwrap();
    }
    let letters = accept(&mut dead_letters, 1).await;
    assert_eq!(letters[0].message, Ok(message(9)));
    let death = letters[0].dead_letter.as_ref().unwrap();
    assert_eq!((death.queue.as_str(), death.reason.as_str()), (format!("{prefix}a").as_str(), "delivery_limit"));
    assert_eq!(death.deliveries, 3);
    let unread = run(&broker, &prefix, &["unread", "a", "1"]).await;
    assert_eq!(unread[0]["body"], "unreadable");
}
