use saga_core::transport::Answer;

use super::*;

const PAYLOAD_BYTES_MAX: usize = 1000;

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
    Message { kind: MessageKind::Reply, headers, ..message() }
}

fn properties() -> BasicProperties {
    encode(message(), PAYLOAD_BYTES_MAX, None).unwrap().properties
}

fn with_header(name: &str, value: AMQPValue) -> BasicProperties {
    changed(properties(), name, value)
}

fn changed(properties: BasicProperties, name: &str, value: AMQPValue) -> BasicProperties {
    let mut headers = properties.headers().clone().unwrap_or_default();
    headers.insert(name.into(), value);
    properties.with_headers(headers)
}

fn without_header(name: &str) -> BasicProperties {
    with_header(name, AMQPValue::Void)
}

fn read(properties: &BasicProperties) -> Result<Message, Unreadable> {
    decode("orders", properties, vec![0, 255], PAYLOAD_BYTES_MAX)
}

#[test]
fn a_message_is_read_as_it_was_written() {
    for sent in [message(), reply(), Message { kind: MessageKind::Event, ..reply() }] {
        let outgoing = encode(sent.clone(), PAYLOAD_BYTES_MAX, None).unwrap();
        let came = decode(outgoing.routing_key.as_str(), &outgoing.properties, outgoing.payload, PAYLOAD_BYTES_MAX);
        assert_eq!(came, Ok(sent));
    }
    let properties = properties();
    assert_eq!(*properties.delivery_mode(), Some(PERSISTENT));
    assert_eq!(*properties.timestamp(), Some(1_735_689_600));
}

#[test]
fn only_what_is_addressed_has_to_be_taken() {
    assert!(!encode(message(), PAYLOAD_BYTES_MAX, None).unwrap().is_addressed);
    let to_services =
        [MessageKind::Command, MessageKind::Undo, MessageKind::Reply, MessageKind::Report, MessageKind::Closed];
    for kind in to_services {
        assert!(encode(Message { kind, ..message() }, PAYLOAD_BYTES_MAX, None).unwrap().is_addressed);
    }
}

#[test]
fn the_usual_properties_stand_beside_the_headers_and_in_for_them() {
    let written = encode(reply(), PAYLOAD_BYTES_MAX, None).unwrap().properties;
    let correlation = Uuid::from_u128(8).to_string();
    assert_eq!(written.correlation_id().as_ref().map(ShortString::as_str), Some(correlation.as_str()));
    assert_eq!(written.reply_to().as_ref().map(ShortString::as_str), Some("payments"));
    let without = changed(changed(written, CORRELATION, AMQPValue::Void), REPLY_TO, AMQPValue::Void);
    let read_as = |kind: MessageKind| read(&changed(without.clone(), KIND, text(kind.as_str()))).unwrap().headers;
    for kind in [MessageKind::Reply, MessageKind::Report] {
        let headers = read_as(kind);
        assert_eq!((headers.correlation, headers.reply_to), (Some(MessageId(Uuid::from_u128(8))), None));
    }
    for kind in [MessageKind::Command, MessageKind::Undo] {
        let headers = read_as(kind);
        assert_eq!((headers.correlation, headers.reply_to.as_deref()), (None, Some("payments")));
    }
    let strangers = properties().with_correlation_id("no UUID".into()).with_reply_to("amq.gen-1".into());
    assert_eq!(read(&strangers).unwrap(), message(), "of an event they are not looked at");
}

/// G3: also a receiver that does not know this project tells the step by its key.
#[test]
fn g3_a_command_carries_the_key_of_its_step() {
    let headers = Headers { saga_key: Some("order/1".into()), ..Headers::default() };
    let sent = Message { kind: MessageKind::Command, event_type: "charge-card".into(), headers, ..message() };
    let written = encode(sent, PAYLOAD_BYTES_MAX, None).unwrap().properties;
    let headers = written.headers().as_ref().unwrap().inner();
    assert_eq!(headers.get(&ShortString::from("x-idempotency-key")), Some(&text("order/1:charge-card")));
}

#[test]
fn the_user_of_the_connection_is_named_to_the_broker() {
    let written = encode(message(), PAYLOAD_BYTES_MAX, Some(&"svc-orders".into())).unwrap().properties;
    assert_eq!(written.user_id().as_ref().map(ShortString::as_str), Some("svc-orders"));
    assert_eq!(properties().user_id(), &None);
}

#[test]
fn a_reply_to_that_no_property_can_hold_travels_in_its_header() {
    let headers = Headers { reply_to: Some("x".repeat(PROPERTY_BYTES_MAX + 1)), ..Headers::default() };
    let sent = Message { kind: MessageKind::Command, headers, ..message() };
    let properties = encode(sent.clone(), PAYLOAD_BYTES_MAX, None).unwrap().properties;
    assert_eq!(properties.reply_to(), &None);
    assert_eq!(read(&properties), Ok(sent));
}

#[test]
fn what_is_no_message_is_handed_on_with_what_can_be_shown() {
    let properties = changed(with_header(KEY, AMQPValue::Boolean(true)), "x-delivery-count", AMQPValue::LongLongInt(1));
    let unreadable = read(&changed(properties, "mine", text("kept"))).unwrap_err();
    assert_eq!(unreadable.id, Some(message().id));
    assert_eq!(unreadable.payload, [0, 255]);
    let has = |name: &str, text: &str| unreadable.headers.contains(&(name.to_owned(), text.to_owned()));
    assert!(has("type", "OrderPlaced") && has("mine", "kept"), "{unreadable:?}");
    assert!(has("timestamp", "1735689600") && has(COMMITTED_AT, "1735689600123456"), "{unreadable:?}");
    let absent = |name: &str| unreadable.headers.iter().all(|(there, _)| there != name);
    assert!(absent(KEY), "it is no text");
    assert!(absent("x-delivery-count"), "it would be another with every delivery");
}

#[test]
fn seconds_stand_in_for_microseconds() {
    let came = read(&without_header(COMMITTED_AT)).unwrap();
    assert_eq!(came.committed_at, Timestamp(1_735_689_600_000_000));
}

#[test]
fn whatever_is_missing_or_wrong_is_named() {
    let check = |properties: BasicProperties, says: &str| {
        let problem = read(&properties).expect_err(says).problem;
        assert!(problem.contains(says), "{problem}");
    };
    let bare = || BasicProperties::default();
    check(bare(), "message-id is missing");
    check(bare().with_message_id("7".into()), "no UUID");
    check(bare().with_message_id(Uuid::nil().to_string().into()), "property type is missing");
    check(properties().with_type("".into()), "property type is missing");
    check(properties().with_headers(FieldTable::default()), "header saga-key is missing");
    check(properties().with_content_encoding("gzip".into()), "\"gzip\"");
    check(without_header(KEY), "header saga-key is missing");
    check(with_header(KEY, AMQPValue::LongLongInt(1)), "saga-key is of the type LongLongInt");
    check(with_header(KEY, AMQPValue::FieldTable(FieldTable::default())), "saga-key is of the type FieldTable");
    check(with_header(KEY, AMQPValue::LongString(vec![0xff].into())), "saga-key is not UTF-8");
    check(with_header(KEY, text(&"x".repeat(KEY_BYTES_MAX + 1))), "4097 bytes");
    check(with_header(TENANT, AMQPValue::Boolean(true)), "saga-tenant is of the type Boolean");
    check(with_header(TENANT, text("a b")), "saga-tenant is wrong");
    check(with_header(COMMITTED_AT, text("yesterday")), "no integer");
    check(with_header(KIND, text("order")), "saga-kind is \"order\"");
    check(with_header("saga-step", AMQPValue::LongLongInt(1)), "saga-step is of the type LongLongInt");
    check(with_header("saga-answer", text("maybe")), "`saga-answer` is \"maybe\"");
    check(with_header("saga-correlation", text("7")), "`saga-correlation` is \"7\"");
    check(with_header("traceparent", text(&"x".repeat(HEADER_BYTES_MAX + 1))), "traceparent has 4097 bytes");
    check(with_header(KIND, text("reply")).with_correlation_id("7".into()), "`saga-correlation` is \"7\"");
    check(without_header(COMMITTED_AT).with_timestamp(u64::MAX), "no seconds");
}

#[test]
fn a_large_body_is_handed_on_whole() {
    let body = vec![1; PAYLOAD_BYTES_MAX + 1];
    let unreadable = decode("orders", &properties(), body.clone(), PAYLOAD_BYTES_MAX).unwrap_err();
    assert_eq!(unreadable.problem, "the body has 1001 bytes; at most 1000 are allowed");
    assert_eq!(unreadable.payload, body);
}

#[test]
fn what_amqp_cannot_carry_is_refused() {
    let check = |message: Message, says: &str| {
        let problem = encode(message, PAYLOAD_BYTES_MAX, None).expect_err(says);
        assert!(problem.contains(says), "{problem}");
    };
    check(Message { topic: "x".repeat(256), ..message() }, "the topic has 256 bytes");
    check(Message { event_type: "x".repeat(256), ..message() }, "the event type has 256 bytes");
    check(Message { event_type: String::new(), ..message() }, "the event type is empty");
    check(Message { key: "x".repeat(KEY_BYTES_MAX + 1), ..message() }, "the ordering key has 4097 bytes");
    let headers = Headers { saga_key: Some("x".repeat(HEADER_BYTES_MAX + 1)), ..Headers::default() };
    check(Message { headers, ..message() }, "the header saga-cause has 4097 bytes");
    check(Message { payload: vec![0; PAYLOAD_BYTES_MAX + 1], ..message() }, "the payload has 1001 bytes");
}
