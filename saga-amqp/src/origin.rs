use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};
use saga_core::transport::DeadLetterInfo;

/// The reason with which a message goes that came back too often.
const DELIVERY_LIMIT: &str = "delivery_limit";
/// The reason if the broker gave none: another program put the message there.
const UNKNOWN: &str = "unknown";

/// Where a dead letter came from, as the broker wrote it down in `x-death`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) death: DeadLetterInfo,
    /// The exchange that it had been published to.
    pub(crate) exchange: String,
    /// The routing key that it had been published with.
    pub(crate) routing_key: String,
}

impl Origin {
    /// The origin of a dead letter of this queue. A message without one was published directly into that queue, as far as
    /// anybody can tell.
    pub(crate) fn of(properties: &BasicProperties, queue: &str, delivery_limit: u32) -> Self {
        let entry = entry_of(properties, queue);
        let text = |name: &str| entry.and_then(|entry| text_of(entry.inner().get(name)?));
        let reason = text("reason").unwrap_or_else(|| UNKNOWN.to_owned());
        // The broker does not say how often it delivered it.
        let deliveries = if reason == DELIVERY_LIMIT { delivery_limit.saturating_add(1) } else { 1 };
        Self {
            death: DeadLetterInfo { queue: queue.to_owned(), reason, deliveries },
            exchange: text("exchange").unwrap_or_default(),
            routing_key: entry.and_then(routing_key).unwrap_or_else(|| queue.to_owned()),
        }
    }
}

/// What the broker wrote last stands first. A sender can write such entries too, but not in front of the broker's.
fn entry_of<'a>(properties: &'a BasicProperties, queue: &str) -> Option<&'a FieldTable> {
    let deaths = properties.headers().as_ref()?.inner().get("x-death")?;
    let AMQPValue::FieldArray(deaths) = deaths else { return None };
    let entries = deaths.as_slice().iter().filter_map(|entry| match entry {
        AMQPValue::FieldTable(entry) => Some(entry),
        _ => None,
    });
    let is_of_queue = |entry: &&FieldTable| entry.inner().get("queue").and_then(text_of).as_deref() == Some(queue);
    { entries }.find(is_of_queue)
}

fn routing_key(entry: &FieldTable) -> Option<String> {
    match entry.inner().get("routing-keys")? {
        AMQPValue::FieldArray(keys) => keys.as_slice().first().and_then(text_of),
        _ => None,
    }
}

fn text_of(value: &AMQPValue) -> Option<String> {
    match value {
        AMQPValue::LongString(text) => std::str::from_utf8(text.as_bytes()).ok().map(str::to_owned),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use lapin::types::FieldArray;

    use super::*;

    const QUEUE: &str = "saga.service:payments";

    fn text(text: &str) -> AMQPValue {
        AMQPValue::LongString(text.into())
    }

    fn entry(queue: &str, reason: &str, key: &str) -> AMQPValue {
        let mut entry = FieldTable::default();
        entry.insert("queue".into(), text(queue));
        entry.insert("reason".into(), text(reason));
        entry.insert("exchange".into(), text("saga.services"));
        entry.insert("routing-keys".into(), AMQPValue::FieldArray(FieldArray::from(vec![text(key)])));
        AMQPValue::FieldTable(entry)
    }

    fn with(deaths: AMQPValue) -> BasicProperties {
        let mut headers = FieldTable::default();
        headers.insert("x-death".into(), deaths);
        BasicProperties::default().with_headers(headers)
    }

    fn check(properties: &BasicProperties, reason: &str, deliveries: u32, exchange: &str, key: &str) {
        let death = DeadLetterInfo { queue: QUEUE.into(), reason: reason.into(), deliveries };
        let expected = Origin { death, exchange: exchange.into(), routing_key: key.into() };
        assert_eq!(Origin::of(properties, QUEUE, 20), expected);
    }

    #[test]
    fn the_brokers_own_entry_of_the_queue_is_believed() {
        let deaths = vec![
            entry("another", "expired", "a"),
            entry(QUEUE, "delivery_limit", "service:payments"),
            entry(QUEUE, "forged", "b"),
        ];
        let properties = with(AMQPValue::FieldArray(deaths.into()));
        check(&properties, "delivery_limit", 21, "saga.services", "service:payments");
        let expired = with(AMQPValue::FieldArray(vec![entry(QUEUE, "expired", "orders")].into()));
        check(&expired, "expired", 1, "saga.services", "orders");
    }

    #[test]
    fn whatever_else_stands_there_is_no_origin() {
        let other_types = vec![AMQPValue::Boolean(true), AMQPValue::FieldTable(FieldTable::default())];
        for deaths in [text("forged"), AMQPValue::Void, AMQPValue::FieldArray(other_types.into())] {
            check(&with(deaths), "unknown", 1, "", QUEUE);
        }
        check(&BasicProperties::default(), "unknown", 1, "", QUEUE);
    }
}
