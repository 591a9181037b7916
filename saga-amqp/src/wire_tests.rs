use super::*;

const PAYLOAD_BYTES_MAX: usize = 1000;

fn message() -> Message {
    Message {
        id: MessageId(uuid::Uuid::from_u128(7)),
        tenant: Tenant::new("acme").unwrap(),
        topic: "orders".into(),
        key: "Größe".into(),
        event_type: "OrderPlaced".into(),
        payload: vec![0, 255],
        committed_at: Timestamp(1_735_689_600_123_456),
    }
}

fn properties() -> BasicProperties {
    encode(message(), PAYLOAD_BYTES_MAX).unwrap().properties
}

fn with_header(name: &str, value: AMQPValue) -> BasicProperties {
    let mut headers = properties().headers().clone().unwrap_or_default();
    headers.insert(name.into(), value);
    properties().with_headers(headers)
}

fn without_header(name: &str) -> BasicProperties {
    with_header(name, AMQPValue::Void)
}

fn read(properties: &BasicProperties) -> Result<Message, String> {
    decode("orders", properties, &mut vec![0, 255], PAYLOAD_BYTES_MAX)
}

#[test]
fn a_message_is_read_as_it_was_written() {
    let Outgoing { routing_key, properties, mut payload } = encode(message(), PAYLOAD_BYTES_MAX).unwrap();
    let came = decode(routing_key.as_str(), &properties, &mut payload, PAYLOAD_BYTES_MAX).unwrap();
    assert_eq!(came, message());
    assert_eq!(*properties.delivery_mode(), Some(PERSISTENT));
    assert_eq!(*properties.timestamp(), Some(1_735_689_600));
}

#[test]
fn seconds_stand_in_for_microseconds() {
    let came = read(&without_header(COMMITTED_AT)).unwrap();
    assert_eq!(came.committed_at, Timestamp(1_735_689_600_000_000));
}

#[test]
fn whatever_is_missing_or_wrong_is_named() {
    let check = |properties: BasicProperties, says: &str| {
        let problem = read(&properties).expect_err(says);
        assert!(problem.contains(says), "{problem}");
    };
    let bare = || BasicProperties::default();
    check(bare(), "message-id is missing");
    check(bare().with_message_id("7".into()), "no UUID");
    check(bare().with_message_id(uuid::Uuid::nil().to_string().into()), "property type is missing");
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
    check(without_header(COMMITTED_AT).with_timestamp(u64::MAX), "no seconds");
}

#[test]
fn a_large_body_is_left_where_it_is() {
    let mut payload = vec![1; PAYLOAD_BYTES_MAX + 1];
    let problem = decode("orders", &properties(), &mut payload, PAYLOAD_BYTES_MAX).unwrap_err();
    assert_eq!(problem, "the body has 1001 bytes; at most 1000 are allowed");
    assert_eq!(payload.len(), PAYLOAD_BYTES_MAX + 1);
}

#[test]
fn what_amqp_cannot_carry_is_refused() {
    let check = |message: Message, says: &str| {
        let problem = encode(message, PAYLOAD_BYTES_MAX).expect_err(says);
        assert!(problem.contains(says), "{problem}");
    };
    check(Message { topic: "x".repeat(256), ..message() }, "the topic has 256 bytes");
    check(Message { event_type: "x".repeat(256), ..message() }, "the event type has 256 bytes");
    check(Message { event_type: String::new(), ..message() }, "the event type is empty");
    check(Message { key: "x".repeat(KEY_BYTES_MAX + 1), ..message() }, "the ordering key has 4097 bytes");
    check(Message { payload: vec![0; PAYLOAD_BYTES_MAX + 1], ..message() }, "the payload has 1001 bytes");
}
