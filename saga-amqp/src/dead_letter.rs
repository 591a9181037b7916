//! What becomes of a delivery that is no message: it goes to the dead letters with the reason, whole.

use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable, ShortString};

use crate::wire::{Outgoing, text};

/// Why it is a dead letter.
pub(crate) const REASON: &str = "saga-dead-reason";
/// The queue that it came from.
pub(crate) const QUEUE: &str = "saga-dead-queue";
/// The exchange that it was published to.
pub(crate) const EXCHANGE: &str = "saga-dead-exchange";
/// The routing key that it was published with.
pub(crate) const ROUTING_KEY: &str = "saga-dead-routing-key";
/// How many bytes of headers were left out because they were too large to be sent again.
pub(crate) const HEADERS_LEFT_OUT: &str = "saga-dead-headers-left-out";

/// What headers of that name begin with. Whatever a sender wrote there is not ours, and is dropped.
const OURS: &str = "saga-dead-";
/// What the broker itself writes, or acts on.
const BROKERS: [&str; 7] =
    ["x-death", "x-first-death-", "x-last-death-", "x-delivery-count", "x-acquired-count", "CC", "BCC"];
/// The most bytes of headers that are sent along: with the properties they have to fit into one frame, which has 128 KiB.
const HEADER_BYTES_MAX: usize = 64 << 10;
const PERSISTENT: u8 = 2;

/// The dead letter of a delivery from a queue. Its headers, its properties and its body are kept, but for those that
/// would act on the way: an expiry, a user that must be the sender, further recipients.
pub(crate) fn dead_letter(delivery: &mut Delivery, queue: &str, reason: &str) -> Outgoing {
    let mut headers = kept_headers(delivery.properties.headers().as_ref());
    headers.insert(REASON.into(), text(reason));
    headers.insert(QUEUE.into(), text(queue));
    headers.insert(EXCHANGE.into(), text(delivery.exchange.as_str()));
    headers.insert(ROUTING_KEY.into(), text(delivery.routing_key.as_str()));
    let properties = kept_properties(&delivery.properties).with_headers(headers).with_delivery_mode(PERSISTENT);
    Outgoing { routing_key: queue.into(), properties, payload: std::mem::take(&mut delivery.data) }
}

fn kept_headers(headers: Option<&FieldTable>) -> FieldTable {
    let Some(headers) = headers else { return FieldTable::default() };
    let mut kept = FieldTable::default();
    let bytes: usize = headers.inner().iter().map(|(name, value)| name.as_str().len() + size(value)).sum();
    if bytes > HEADER_BYTES_MAX {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        kept.insert(HEADERS_LEFT_OUT.into(), AMQPValue::LongLongInt(bytes));
        return kept;
    }
    for (name, value) in headers.inner() {
        let is_brokers = BROKERS.iter().any(|prefix| name.as_str().starts_with(prefix));
        if !is_brokers && !name.as_str().starts_with(OURS) {
            kept.insert(name.clone(), value.clone());
        }
    }
    kept
}

fn kept_properties(from: &BasicProperties) -> BasicProperties {
    type With = fn(BasicProperties, ShortString) -> BasicProperties;
    let texts: [(&Option<ShortString>, With); 7] = [
        (from.message_id(), BasicProperties::with_message_id),
        (from.correlation_id(), BasicProperties::with_correlation_id),
        (from.reply_to(), BasicProperties::with_reply_to),
        (from.kind(), BasicProperties::with_type),
        (from.content_type(), BasicProperties::with_content_type),
        (from.content_encoding(), BasicProperties::with_content_encoding),
        (from.app_id(), BasicProperties::with_app_id),
    ];
    let mut kept = BasicProperties::default();
    for (value, with) in texts {
        if let Some(value) = value {
            kept = with(kept, value.clone());
        }
    }
    if let Some(timestamp) = from.timestamp() {
        kept = kept.with_timestamp(*timestamp);
    }
    kept
}

/// About how many bytes a value takes in a frame.
fn size(value: &AMQPValue) -> usize {
    let inner = match value {
        AMQPValue::LongString(text) => text.len(),
        AMQPValue::ShortString(text) => text.as_str().len(),
        AMQPValue::ByteArray(bytes) => bytes.len(),
        AMQPValue::FieldArray(values) => values.as_slice().iter().map(size).sum(),
        AMQPValue::FieldTable(table) => {
            table.inner().iter().map(|(name, value)| name.as_str().len() + 1 + size(value)).sum()
        }
        _ => 8,
    };
    inner + 6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(properties: BasicProperties) -> Outgoing {
        let mut delivery = Delivery::mock(1, "saga.events".into(), "orders".into(), false, b"{}".to_vec());
        delivery.properties = properties;
        dead_letter(&mut delivery, "saga.payments", "the header saga-key is missing")
    }

    fn header<'a>(letter: &'a Outgoing, name: &str) -> Option<&'a AMQPValue> {
        letter.properties.headers().as_ref().and_then(|headers| headers.inner().get(name))
    }

    #[test]
    fn it_says_why_and_whence_and_keeps_the_rest() {
        let mut headers = FieldTable::default();
        headers.insert("mine".into(), text("kept"));
        let properties =
            BasicProperties::default().with_headers(headers).with_message_id("x".into()).with_type("T".into());
        let letter = letter(properties);
        assert_eq!(letter.routing_key.as_str(), "saga.payments");
        assert_eq!(letter.payload, b"{}");
        assert_eq!(header(&letter, REASON), Some(&text("the header saga-key is missing")));
        assert_eq!(header(&letter, QUEUE), Some(&text("saga.payments")));
        assert_eq!(header(&letter, EXCHANGE), Some(&text("saga.events")));
        assert_eq!(header(&letter, ROUTING_KEY), Some(&text("orders")));
        assert_eq!(header(&letter, "mine"), Some(&text("kept")));
        assert_eq!(letter.properties.message_id().as_ref().map(ShortString::as_str), Some("x"));
    }

    #[test]
    fn what_would_act_on_the_way_is_dropped() {
        let mut headers = FieldTable::default();
        for name in ["x-death", "x-first-death-queue", "CC", "saga-dead-reason", "saga-dead-anything"] {
            headers.insert(name.into(), AMQPValue::LongLongInt(1));
        }
        let properties =
            BasicProperties::default().with_headers(headers).with_expiration("1".into()).with_user_id("mallory".into());
        let letter = letter(properties);
        assert_eq!(letter.properties.expiration(), &None);
        assert_eq!(letter.properties.user_id(), &None);
        let names: Vec<&str> =
            letter.properties.headers().as_ref().unwrap().inner().keys().map(ShortString::as_str).collect();
        assert_eq!(names, [EXCHANGE, QUEUE, REASON, ROUTING_KEY]);
    }

    #[test]
    fn headers_that_would_not_fit_are_counted() {
        let mut headers = FieldTable::default();
        headers.insert("large".into(), text(&"x".repeat(HEADER_BYTES_MAX)));
        let letter = letter(BasicProperties::default().with_headers(headers));
        assert!(header(&letter, "large").is_none());
        assert!(matches!(header(&letter, HEADERS_LEFT_OUT), Some(AMQPValue::LongLongInt(bytes)) if *bytes > 65_000));
    }
}
