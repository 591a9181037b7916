//! The names of topics and consumer groups.

use saga_core::transport::MessageKind;

/// The longest prefix, in bytes.
const PREFIX_BYTES_MAX: usize = 64;
/// The longest name of a topic, in bytes: the broker's limit.
const TOPIC_BYTES_MAX: usize = 249;
/// What the name of a topic of dead letters ends with.
const DEAD_LETTERS: &str = ".dead-letters";
/// What the topic of a service begins with.
const SERVICE: &str = "service:";
/// The prefix of the topics that Debezium's event router writes to.
const DEBEZIUM_PREFIX: &str = "outbox.event.";

const HEX: [u8; 16] = *b"0123456789ABCDEF";

/// The names of topics and groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    prefix: String,
    /// Whether topics have the names that a connector makes of them, as in `docs/cdc.md`: without `service:`, and else as they are.
    is_debezium: bool,
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Result<Self, String> {
        if prefix.len() > PREFIX_BYTES_MAX {
            return Err(format!("the prefix has {} bytes; at most {PREFIX_BYTES_MAX} are allowed", prefix.len()));
        }
        if let Some(char) = prefix.chars().find(|char| !char.is_ascii() || !is_plain(*char as u8)) {
            return Err(format!("the prefix {prefix:?} contains {char:?}; use ASCII letters, digits, `.` and `-`"));
        }
        if prefix.starts_with("__") {
            return Err("topics that begin with `__` are the broker's own; choose another prefix".to_owned());
        }
        Ok(Self { prefix: prefix.to_owned(), is_debezium: false })
    }

    /// The names that a Debezium connector uses.
    pub(crate) fn of_debezium() -> Self {
        Self { prefix: DEBEZIUM_PREFIX.to_owned(), is_debezium: true }
    }

    /// The Kafka topic of a topic.
    pub(crate) fn topic(&self, topic: &str) -> Result<String, String> {
        let named = if self.is_debezium { topic.strip_prefix(SERVICE).unwrap_or(topic) } else { topic };
        if named.is_empty() {
            return Err("the topic is empty".to_owned());
        }
        if topic.ends_with(DEAD_LETTERS) {
            return Err(format!("the topic {topic:?} is called like a topic of dead letters"));
        }
        if !self.is_debezium {
            return self.escaped("the topic", named, "");
        }
        if !named.bytes().all(is_of_kafka) {
            return Err(format!(
                "a connector cannot send to the topic {topic:?}: Kafka allows only ASCII letters, digits, `.`, `_` and `-`"
            ));
        }
        self.prefixed("the topic", topic, named)
    }

    /// The consumer group of a subscription.
    pub(crate) fn group(&self, subscription: &str) -> Result<String, String> {
        if subscription.is_empty() {
            return Err("a subscription needs a name: its consumer group is called after it".to_owned());
        }
        if subscription.ends_with(DEAD_LETTERS) {
            return Err(format!("the subscription {subscription:?} is called like one of dead letters"));
        }
        self.escaped("the name of the subscription", subscription, "")
    }

    /// The Kafka topic of the dead letters of a subscription, and the consumer group that receives them.
    pub(crate) fn dead_letters(&self, subscription: &str) -> Result<String, String> {
        self.group(subscription)?;
        self.escaped("the name of the subscription", subscription, DEAD_LETTERS)
    }

    /// The topic of a message that arrived in this Kafka topic; nothing where the topic is none of ours.
    pub(crate) fn read(&self, kafka_topic: &str, kind: MessageKind) -> Option<String> {
        let named = kafka_topic.strip_prefix(&self.prefix)?;
        if !self.is_debezium {
            return unescape(named);
        }
        Some(if kind == MessageKind::Event { named.to_owned() } else { format!("{SERVICE}{named}") })
    }

    fn escaped(&self, what: &str, text: &str, end: &str) -> Result<String, String> {
        self.prefixed(what, text, &format!("{}{end}", escape(text)))
    }

    fn prefixed(&self, what: &str, text: &str, named: &str) -> Result<String, String> {
        let name = format!("{}{named}", self.prefix);
        if name.len() > TOPIC_BYTES_MAX {
            return Err(format!(
                "{what} {text:?} makes a Kafka name of {} bytes; at most {TOPIC_BYTES_MAX} are allowed",
                name.len()
            ));
        }
        Ok(name)
    }
}

/// Whether it is the topic of what is addressed to one service.
pub(crate) fn is_service(topic: &str) -> bool {
    topic.starts_with(SERVICE)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-'
}

/// Whether Kafka allows it in the name of a topic.
fn is_of_kafka(byte: u8) -> bool {
    is_plain(byte) || byte == b'_'
}

/// Writes each byte that Kafka does not allow, and `_` itself, as `_` and two hexadecimal digits.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            escaped.push(byte.into());
        } else {
            escaped.push('_');
            escaped.extend([byte >> 4, byte & 0xf].map(|digit| char::from(HEX[usize::from(digit)])));
        }
    }
    escaped
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if *first == b'_' {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &behind[2..];
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names::new("shop.").unwrap()
    }

    #[test]
    fn names_follow_from_the_prefix() {
        assert_eq!(names().topic("OrderPlaced").unwrap(), "shop.OrderPlaced");
        assert_eq!(names().topic("service:payments").unwrap(), "shop.service_3Apayments");
        assert_eq!(names().group("service:payments").unwrap(), "shop.service_3Apayments");
        assert_eq!(names().dead_letters("service:payments").unwrap(), "shop.service_3Apayments.dead-letters");
    }

    #[test]
    fn every_topic_is_read_back() {
        for topic in ["orders", "service:payments", "a_b", "a_3Ab", "Größe ✓", "a.b-c", "%"] {
            let name = names().topic(topic).unwrap();
            assert!(name.bytes().all(is_of_kafka), "{name}");
            assert_eq!(names().read(&name, MessageKind::Event).as_deref(), Some(topic));
        }
        for foreign in ["orders", "shop._", "shop._4", "shop._FF", "shop._xy"] {
            assert_eq!(names().read(foreign, MessageKind::Event), None, "{foreign}");
        }
    }

    #[test]
    fn debezium_leaves_out_what_a_service_begins_with_and_writes_the_rest_as_it_is() {
        let names = Names::of_debezium();
        assert_eq!(names.topic("order_events").unwrap(), "outbox.event.order_events");
        assert_eq!(names.read("outbox.event.order_events", MessageKind::Event).unwrap(), "order_events");
        assert_eq!(names.read("outbox.event.a_5Fb", MessageKind::Event).unwrap(), "a_5Fb");
        assert_eq!(names.topic("service:payments").unwrap(), "outbox.event.payments");
        assert_eq!(names.read("outbox.event.payments", MessageKind::Command).unwrap(), "service:payments");
        assert_eq!(names.read("outbox.event.payments", MessageKind::Event).unwrap(), "payments");
    }

    #[test]
    fn bad_names_are_refused_with_the_reason() {
        let check = |problem: Result<(), String>, says: &str| {
            let problem = problem.expect_err(says);
            assert!(problem.contains(says), "{problem}");
        };
        check(Names::new("a b").map(drop), "contains ' '");
        check(Names::new("a_b").map(drop), "contains '_'");
        check(Names::new("ü").map(drop), "contains 'ü'");
        check(Names::new(&"x".repeat(65)).map(drop), "65 bytes");
        check(names().topic("").map(drop), "is empty");
        check(names().topic("a.dead-letters").map(drop), "a topic of dead letters");
        check(names().topic(&"ü".repeat(42)).map(drop), "at most 249");
        check(Names::of_debezium().topic("a b").map(drop), "cannot send to the topic \"a b\"");
        check(Names::of_debezium().topic("service:").map(drop), "is empty");
        check(names().group("").map(drop), "needs a name");
        check(names().group("a.dead-letters").map(drop), "one of dead letters");
        check(names().dead_letters(&"x".repeat(240)).map(drop), "at most 249");
    }
}
