use saga_core::key::Tenant;
use saga_core::transport::Answer;

use super::*;

const PAYLOAD_BYTES_MAX: usize = 1000;

fn names() -> Names {
    Names::new("saga.").unwrap()
}

fn message() -> Message {
    Message {
        id: MessageId(Uuid::from_u128(7)),
        kind: MessageKind::Event,
        tenant: Tenant::new("acme").unwrap(),
        topic: "orders".into(),
        key: "Größe".into(),
        event_type: "OrderPlaced".into(),
        payload: vec![0, 255],
        committed_at: Timestamp(1_735_689_600_123_456),
        headers: Headers::default(),
    }
}

/// A reply with everything in it.
fn reply() -> Message {
    let headers = Headers {
        saga_key: Some("order/1".into()),
        step: Some("charge-card".into()),
        service: Some("orders".into()),
        reply_to: Some("payments".into()),
        correlation: Some(MessageId(Uuid::from_u128(8))),
        answer: Some(Answer::Done),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        locks: Some(r#"{"credit":[{"kind":"account","id":"7","token":41}]}"#.into()),
        key_id: Some("payments-1".into()),
        signature: Some("00ff".into()),
    };
    Message { kind: MessageKind::Reply, topic: "service:orders".into(), headers, ..message() }
}

/// The record that a broker makes of it.
fn record(sent: Message) -> Record {
    let Outgoing { topic, key, headers, payload, .. } = encode(sent, &names(), PAYLOAD_BYTES_MAX).unwrap();
    Record { topic, partition: 0, offset: 5, key, payload, headers, timestamp: Some(1_735_689_601_000) }
}

fn read(record: &Record) -> Result<Message, Unreadable> {
    decode(record, &names(), PAYLOAD_BYTES_MAX)
}

fn with_header(name: &str, value: Option<&[u8]>) -> Record {
    let mut record = record(message());
    record.headers.retain(|(there, _)| there != name);
    record.headers.push((name.to_owned(), value.map(<[u8]>::to_vec)));
    record
}

fn refused(record: &Record, says: &str) -> Unreadable {
    let unreadable = read(record).expect_err(says);
    assert!(unreadable.problem.contains(says), "{}", unreadable.problem);
    unreadable
}

#[test]
fn a_message_is_read_as_it_was_written() {
    for sent in [message(), reply(), Message { kind: MessageKind::Event, topic: "orders".into(), ..reply() }] {
        assert_eq!(read(&record(sent.clone())), Ok(sent));
    }
    let record = record(reply());
    assert_eq!(
        (record.topic.as_str(), record.key.as_deref()),
        ("saga.service_3Aorders", Some("acme/Größe".as_bytes()))
    );
    assert_eq!(record.text("x-idempotency-key"), Ok(Some(Uuid::from_u128(7).to_string().as_str())));
}

/// G3: also a receiver that does not know this project tells the step by its key.
#[test]
fn g3_a_command_carries_the_key_of_its_step() {
    let sent = Message { kind: MessageKind::Command, event_type: "charge-card".into(), ..reply() };
    assert_eq!(record(sent).text("x-idempotency-key"), Ok(Some("order/1:charge-card")));
}

#[test]
fn the_key_of_the_default_tenant_is_the_ordering_key() {
    assert_eq!(record(Message { tenant: Tenant::default(), ..message() }).key, Some("Größe".as_bytes().to_vec()));
}

#[test]
fn what_a_stranger_need_not_send_is_filled_in() {
    let mut sent = record(message());
    sent.headers.retain(|(name, _)| ![COMMITTED_AT, TENANT, CONTENT_TYPE, IDEMPOTENCY_KEY].contains(&name.as_str()));
    sent.payload = None;
    let expected = Message {
        tenant: Tenant::default(),
        committed_at: Timestamp(1_735_689_601_000_000),
        payload: Vec::new(),
        ..message()
    };
    assert_eq!(read(&sent), Ok(expected));
}

#[test]
fn a_header_without_a_value_is_absent_and_the_first_of_two_counts() {
    let mut sent = record(message());
    sent.headers.insert(0, (TYPE.to_owned(), None));
    sent.headers.push((TYPE.to_owned(), Some(b"Other".to_vec())));
    sent.headers.push(("unknown".to_owned(), Some(vec![0xff])));
    assert_eq!(read(&sent), Ok(message()));
}

#[test]
fn what_is_malformed_is_named() {
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    for (name, value, says) in [
        (MESSAGE_ID, None, "the header message-id is missing"),
        (MESSAGE_ID, Some(b"7".as_slice()), "the header message-id is \"7\", and no UUID"),
        (TYPE, None, "the header type is missing"),
        (TYPE, Some(long.as_bytes()), "the header type has 4097 bytes"),
        (KEY, None, "the header saga-key is missing"),
        (KEY, Some(&[0xff]), "the header saga-key is not UTF-8"),
        (KEY, Some(long.as_bytes()), "the header saga-key has 4097 bytes"),
        (KIND, Some(b"order"), "the header saga-kind is \"order\", and none of event"),
        (TENANT, Some(b"a b"), "the header saga-tenant is wrong"),
        (COMMITTED_AT, Some(b"soon"), "the header saga-committed-at is \"soon\", and no integer"),
        ("saga-correlation", Some(b"x"), "saga-correlation"),
        ("saga-step", Some(long.as_bytes()), "the header saga-step has 4097 bytes"),
    ] {
        refused(&with_header(name, value), says);
    }
    refused(&Record { topic: "other".into(), ..record(message()) }, "the topic \"other\" is none of this prefix");
    refused(&Record { payload: Some(vec![0; 1_001]), ..record(message()) }, "the value has 1001 bytes");
    let undated = Record { timestamp: None, ..with_header(COMMITTED_AT, None) };
    refused(&undated, "and so is the record's timestamp");
}

#[test]
fn what_is_malformed_is_kept_as_it_came() {
    let mut sent = with_header(KEY, None);
    sent.headers.push(("trace".to_owned(), Some(b"7".to_vec())));
    sent.headers.push(("binary".to_owned(), Some(vec![0xff])));
    let unreadable = refused(&sent, "saga-key");
    assert_eq!((unreadable.id, unreadable.payload), (Some(message().id), vec![0, 255]));
    let shown =
        |name: &str| unreadable.headers.iter().find(|(there, _)| there == name).map(|(_, value)| value.as_str());
    assert_eq!((shown("key"), shown("trace"), shown("binary")), (Some("acme/Größe"), Some("7"), None));
}

#[test]
fn what_cannot_be_sent_is_named() {
    let check = |message, says: &str| {
        let problem = encode(message, &names(), PAYLOAD_BYTES_MAX).expect_err(says);
        assert!(problem.contains(says), "{problem}");
    };
    check(Message { event_type: String::new(), ..message() }, "the event type is empty");
    check(Message { key: "x".repeat(4_097), ..message() }, "the ordering key has 4097 bytes");
    check(Message { payload: vec![0; 1_001], ..message() }, "the payload has 1001 bytes; at most 1000");
    check(Message { topic: "x".repeat(300), ..message() }, "at most 249");
    let headers = Headers { step: Some("x".repeat(4_097)), ..Headers::default() };
    check(Message { headers, ..message() }, "the header saga-step has 4097 bytes");
}

#[test]
fn the_longest_message_fits_into_what_a_broker_takes() {
    let long = || "x".repeat(TEXT_BYTES_MAX);
    let headers = Headers {
        saga_key: Some(long()),
        step: Some(long()),
        service: Some(long()),
        reply_to: Some(long()),
        traceparent: Some(long()),
        locks: Some("x".repeat(Headers::LOCKS_BYTES_MAX)),
        key_id: Some(long()),
        signature: Some(long()),
        ..reply().headers
    };
    let longest = Message { key: long(), event_type: long(), headers, ..reply() };
    let Outgoing { key, headers, payload, .. } = encode(longest, &names(), PAYLOAD_BYTES_MAX).unwrap();
    let of_headers: usize =
        headers.iter().map(|(name, value)| 16 + name.len() + value.as_ref().map_or(0, Vec::len)).sum();
    let head = key.unwrap().len() + of_headers;
    assert!(head < HEAD_BYTES_MAX, "{head}");
    assert_eq!(payload, Some(vec![0, 255]));
    let default = crate::KafkaOptions::new("").payload_bytes_max;
    assert!(default + HEAD_BYTES_MAX < 1_048_588, "a broker's default");
}

/// What a Debezium connector makes of a row of the outbox, as `docs/cdc.md` configures it.
fn of_connector(headers: &str) -> Record {
    let header = |name: &str, value: &str| (name.to_owned(), Some(value.as_bytes().to_vec()));
    Record {
        topic: "outbox.event.payments".into(),
        partition: 0,
        offset: 0,
        key: Some(b"order-17".to_vec()),
        payload: Some(b"{\"amount\":1200}".to_vec()),
        headers: vec![
            header("id", &Uuid::from_u128(7).to_string()),
            header("type", "charge-card"),
            header("tenant", ""),
            header("kind", "command"),
            header("headers", headers),
            header("position", "1"),
            header("committed_at", "2025-01-01T00:00:00.123456Z"),
        ],
        // When the connector read the row.
        timestamp: Some(1_735_689_700_000),
    }
}

#[test]
fn what_a_debezium_connector_sends_is_read() {
    let headers = Headers {
        saga_key: Some("order/17".into()),
        step: Some("charge-card".into()),
        reply_to: Some("orders".into()),
        ..Headers::default()
    };
    let expected = Message {
        id: MessageId(Uuid::from_u128(7)),
        kind: MessageKind::Command,
        tenant: Tenant::default(),
        topic: "service:payments".into(),
        key: "order-17".into(),
        event_type: "charge-card".into(),
        payload: b"{\"amount\":1200}".to_vec(),
        committed_at: Timestamp(1_735_689_600_123_456),
        headers: headers.clone(),
    };
    let read = |record: &Record| decode(record, &Names::of_debezium(), PAYLOAD_BYTES_MAX);
    let mut record = of_connector(&headers.encode());
    assert_eq!(read(&record), Ok(expected.clone()));
    // As the page configured a connector before it had this header.
    record.headers.pop();
    assert_eq!(read(&record), Ok(Message { committed_at: Timestamp(1_735_689_700_000_000), ..expected }));
    record.headers.push(("committed_at".into(), Some(b"yesterday".to_vec())));
    let problem = read(&record).expect_err("no moment").problem;
    assert_eq!(problem, "the header committed_at is \"yesterday\", and no moment in UTC");
    let problem = read(&of_connector("[")).expect_err("no JSON").problem;
    assert!(problem.contains("the header headers is wrong"), "{problem}");
}
