//! A client in another language, written from `docs/wire.md`, is a first-class citizen.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeMap;

use saga_amqp::{AmqpOptions, AmqpTransport};
use saga_core::key::Tenant;
use saga_core::store::Timestamp;
use saga_core::transport::{Delivery, Incoming, Message, Settlement};
use serde_json::{Value, json};

use self::support::messages::{message, publish_until_confirmed, receive, subscribe};
use self::support::{Broker, unique_prefix};

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
    let came = accept(&mut incoming, 4).await;
    let of = |number: u128| -> Vec<&Message> {
        came.iter().map(|delivery| &delivery.message).filter(|message| message.id.0.as_u128() == number).collect()
    };
    assert_eq!(of(1).len(), 2, "a duplicate comes, and is told by its id");
    let first = of(1)[0];
    assert_eq!((first.topic.as_str(), first.key.as_str(), first.event_type.as_str()), ("orders", "k-1", "OrderPlaced"));
    assert_eq!(first.committed_at, Timestamp(1_735_689_600_000_001));
    assert_eq!(first.payload, br#"{"number":1}"#);
    assert_eq!(of(2)[0].tenant, Tenant::new("acme").unwrap());
    assert_eq!(of(2)[0].committed_at, Timestamp(1_735_689_600_000_000), "seconds are enough");
    assert_eq!(of(6).len(), 1, "what the broker's and the dead letters' headers say is not believed");
    let letters = run(&broker, &prefix, &["dead-letters", "a", "6"]).await;
    let reasons: BTreeMap<&str, &str> = letters.iter().map(reason).collect();
    assert_eq!(reasons.len(), 6, "{reasons:?}");
    let says = |id: u128, part: &str| {
        let id = format!("'{}'", uuid::Uuid::from_u128(id));
        assert!(reasons.get(id.as_str()).is_some_and(|reason| reason.contains(part)), "{id} {part}: {reasons:?}");
    };
    says(3, "saga-key is of the type");
    says(4, "saga-tenant is of the type");
    says(5, "saga-key is missing");
    says(8, "type is missing");
    assert!(reasons["None"].contains("message-id is missing"), "{reasons:?}");
    assert!(reasons["'7'"].contains("no UUID"), "{reasons:?}");
}

/// The id and the reason of a dead letter, as the client shows them.
fn reason(letter: &Value) -> (&str, &str) {
    (letter["message_id"].as_str().unwrap(), letter["headers"]["saga-dead-reason"].as_str().unwrap())
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

#[tokio::test(flavor = "multi_thread")]
async fn g8_what_cannot_even_be_read_is_given_up_and_holds_up_nothing_for_long() {
    let (broker, prefix) = (Broker::shared(), unique_prefix());
    // Each connection that it breaks brings it nearer to being given up.
    let options = AmqpOptions::new(&broker.url).prefix(&prefix).delivery_limit(3);
    let transport = AmqpTransport::connect_with(options).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 10).await;
    run(&broker, &prefix, &["send-unreadable"]).await;
    let mut numbers = std::collections::BTreeSet::new();
    while numbers.len() < 4 {
        numbers.extend(accept(&mut incoming, 1).await.iter().map(|delivery| delivery.message.id.0.as_u128()));
    }
    assert_eq!(numbers, [1, 3, 4, 5].into(), "the others came");
    let letters = run(&broker, &prefix, &["dead-letters", "a", "1"]).await;
    assert_eq!(letters[0]["body"], "unreadable");
    assert!(letters[0]["headers"]["x-death"].to_string().contains("delivery_limit"), "{letters:?}");
    assert!(transport.health().publisher.last_error.is_none(), "the publisher has a connection of its own");
}
