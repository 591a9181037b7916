use saga_core::key::Tenant;
use saga_core::store::Timestamp;
use saga_core::transport::Headers;

use super::*;

const PAYLOAD_BYTES_MAX: usize = 700 << 10;

fn names() -> Names {
    Names::new("shop").unwrap()
}

fn message() -> Message {
    Message {
        tenant: Tenant::new("acme").unwrap(),
        key: "order-1".into(),
        event_type: "OrderPlaced".into(),
        payload: b"{}".to_vec(),
        committed_at: Timestamp(1_735_689_600_000_000),
        headers: Headers { saga_key: Some("order/\"1\"".into()), ..Headers::default() },
        ..Message::new(MessageId(Uuid::from_u128(7)), MessageKind::Event, "orders")
    }
}

fn outgoing(message: Message) -> Outgoing {
    encode(message, 0, &Call::new(), &names(), PAYLOAD_BYTES_MAX).unwrap()
}

fn refused(message: Message) -> String {
    encode(message, 0, &Call::new(), &names(), PAYLOAD_BYTES_MAX).expect_err("it cannot be carried")
}

fn attributes(sent: &Outgoing) -> BTreeMap<String, String> {
    let encoding = sent.encoding.name().map(|name| (ENCODING.to_owned(), name.to_owned()));
    [(HEAD.to_owned(), sent.head.clone())].into_iter().chain(encoding).collect()
}

fn unreadable(head: &str, body: &str) -> Unreadable {
    let attributes = BTreeMap::from([(HEAD.to_owned(), head.to_owned())]);
    decode(&attributes, body, PAYLOAD_BYTES_MAX).expect_err("it is no message")
}

#[test]
fn a_message_arrives_as_it_was_sent() {
    for payload in [b"{}".to_vec(), Vec::new(), (0..=255).collect()] {
        for key in ["order-1", "", "Größe \u{ffff}\u{fffe}\0\u{1f}\u{7f}\n"] {
            let sent = Message { payload: payload.clone(), key: key.into(), ..message() };
            let outgoing = outgoing(sent.clone());
            assert!(outgoing.head.chars().all(is_carried), "{}", outgoing.head);
            assert_eq!(decode(&attributes(&outgoing), &outgoing.body, PAYLOAD_BYTES_MAX), Ok(sent));
        }
    }
}

#[test]
fn a_head_is_what_the_page_says() {
    let expected = r#"{"id":"00000000-0000-0000-0000-000000000007","kind":"event","tenant":"acme","topic":"orders","key":"order-1","type":"OrderPlaced","committed_at":1735689600000000,"headers":"{\"saga-cause\":\"order/\\\"1\\\"\"}"}"#;
    assert_eq!(outgoing(message()).head, expected);
    assert!(include_str!("../docs/wire.md").contains(expected), "docs/wire.md shows another head");
}

#[test]
fn events_go_to_a_topic_and_what_is_for_a_service_to_its_queue() {
    assert_eq!(outgoing(message()).to, To::Topic("shop-orders.fifo".into()));
    let command = Message { kind: MessageKind::Command, topic: "service:payments".into(), ..message() };
    let command = outgoing(command);
    assert_eq!(command.to, To::Queue("shop-service_3Apayments.fifo".into()));
    assert!(command.is_addressed);
}

/// T-PUB-4: SQS swallows a deduplication id that it knows, and each call means what it sends.
#[test]
fn each_call_and_each_message_of_it_has_its_own_deduplication_id() {
    let (one, other) = (Call::new(), Call::new());
    let id = |call: &Call, index| encode(message(), index, call, &names(), PAYLOAD_BYTES_MAX).unwrap().deduplication;
    assert_eq!(id(&one, 0), id(&one, 0), "a retry inside a call is told by it");
    assert_ne!(id(&one, 0), id(&other, 0), "the same message in another call is another one");
    assert_ne!(id(&one, 0), id(&one, 1), "so is the same message twice in one call");
    let longest = id(&one, usize::MAX);
    assert!(
        longest.len() <= DEDUPLICATION_ID_BYTES_MAX && longest.bytes().all(|byte| byte.is_ascii_graphic()),
        "{longest}"
    );
}

#[test]
fn a_group_is_a_tenant_a_topic_and_a_key() {
    let group = |tenant: &str, topic: &str, key: &str| {
        let tenant = if tenant.is_empty() { Tenant::default() } else { Tenant::new(tenant).unwrap() };
        outgoing(Message { tenant, topic: topic.into(), key: key.into(), ..message() }).group
    };
    let one = group("a", "b", "c");
    assert_eq!(one, group("a", "b", "c"));
    assert!(one.len() <= 128 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
    for other in
        [group("", "b", "c"), group("a", "bc", ""), group("a", "b", "C"), group("ab", "c", "c"), group("", "ab", "c")]
    {
        assert_ne!(one, other);
    }
}

#[test]
fn what_is_too_long_is_refused_and_what_is_not_is_carried() {
    let long = |bytes| "x".repeat(bytes);
    assert!(!outgoing(Message { key: long(4096), ..message() }).is_addressed);
    assert!(refused(Message { key: long(4097), ..message() }).contains("the ordering key has 4097 bytes"));
    assert!(refused(Message { event_type: long(4097), ..message() }).contains("the event type has 4097 bytes"));
    assert!(refused(Message { event_type: String::new(), ..message() }).contains("is empty"));
    let headers = Headers { step: Some(long(4097)), ..Headers::default() };
    assert!(refused(Message { headers, ..message() }).contains("the header saga-step has 4097 bytes"));
    assert!(refused(Message { payload: vec![b'x'; PAYLOAD_BYTES_MAX + 1], ..message() }).contains("the payload has"));
    // The longest payload fits, also as base64, with the longest texts.
    let headers =
        Headers { saga_key: Some(long(4096)), step: Some(long(4096)), service: Some(long(4096)), ..Headers::default() };
    let payload = vec![0xff; PAYLOAD_BYTES_MAX];
    assert!(
        outgoing(Message { key: long(4096), event_type: long(4096), headers, payload, ..message() }).bytes()
            <= MESSAGE_BYTES_MAX
    );
}

#[test]
fn the_limit_of_a_message_counts_its_attributes() {
    let head = outgoing(message()).bytes() - 2;
    let of = |bytes: usize| {
        encode(Message { payload: vec![b'x'; bytes], ..message() }, 0, &Call::new(), &names(), usize::MAX)
    };
    assert_eq!(of(MESSAGE_BYTES_MAX - head).unwrap().bytes(), MESSAGE_BYTES_MAX);
    assert!(of(MESSAGE_BYTES_MAX - head + 1).unwrap_err().contains("the message, with its head, has 1048577 bytes"));
}

#[test]
fn what_a_stranger_sent_is_shown_with_its_problem() {
    let check = |head: &str, says: &str| {
        let came = unreadable(head, "body");
        assert!(came.problem.contains(says), "{}", came.problem);
        assert_eq!((came.payload.as_slice(), came.headers.len()), (&b"body"[..], 1));
    };
    let missing = decode(&BTreeMap::new(), "<order/>", PAYLOAD_BYTES_MAX).unwrap_err();
    assert_eq!(
        (missing.problem.as_str(), missing.payload.as_slice()),
        ("the message attribute saga is missing", &b"<order/>"[..])
    );
    check("", "is wrong");
    check("{}", "is wrong");
    check("[\n]", "is wrong");
    let head = outgoing(message()).head;
    check(&head.replace("\"event\"", "\"letter\""), "is wrong");
    check(&head.replace("OrderPlaced", ""), "the event type is empty");
    check(&head.replace("\"topic\":\"orders\"", "\"topic\":\"\""), "the topic is empty");
    assert_eq!(unreadable(&head.replace("OrderPlaced", ""), "").id, Some(MessageId(Uuid::from_u128(7))));
    let attributes = BTreeMap::from([(HEAD.to_owned(), head), (ENCODING.to_owned(), "gzip".to_owned())]);
    assert!(decode(&attributes, "x", PAYLOAD_BYTES_MAX).unwrap_err().problem.contains("\"gzip\""));
}
