/// The longest prefix, in bytes.
const PREFIX_BYTES_MAX: usize = 64;
/// The longest name of a subscription, in bytes.
const SUBSCRIPTION_BYTES_MAX: usize = 120;
/// The longest topic, in bytes: it is the routing key, which AMQP ends there.
pub(crate) const TOPIC_BYTES_MAX: usize = 255;
/// What the name of a dead-letter queue ends with.
const DEAD_LETTERS: &str = ".dead-letters";
/// What the name of the queue of what could not even be taken as a dead letter ends with.
const UNREAD: &str = ".unread";

/// What the topic of a service begins with, and the name of the subscription to what is addressed to it.
const SERVICE: &str = "service:";

/// The names of exchanges and queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Result<Self, String> {
        check("the prefix", prefix, PREFIX_BYTES_MAX)?;
        if prefix.starts_with("amq.") {
            return Err("the prefix \"amq.\" is the broker's own; choose another".to_owned());
        }
        Ok(Self { prefix: prefix.to_owned() })
    }

    /// The exchange that events are published to.
    pub(crate) fn events(&self) -> String {
        format!("{}events", self.prefix)
    }

    /// The exchange that what is addressed to a service is published to.
    pub(crate) fn services(&self) -> String {
        format!("{}services", self.prefix)
    }

    /// The exchange that a topic is published to.
    pub(crate) fn exchange(&self, topic: &str) -> String {
        if is_service(topic) { self.services() } else { self.events() }
    }

    /// The exchange that dead letters go through.
    pub(crate) fn dead_letters(&self) -> String {
        format!("{}dead-letters", self.prefix)
    }

    /// The queue of a subscription.
    pub(crate) fn queue(&self, subscription: &str) -> Result<String, String> {
        if subscription.is_empty() {
            return Err("a subscription needs a name: its queue is called after it".to_owned());
        }
        // The colon keeps the queue of a service apart from all others.
        let name = subscription.strip_prefix(SERVICE).unwrap_or(subscription);
        check("the name of the subscription", name, SUBSCRIPTION_BYTES_MAX)?;
        let queue = format!("{}{subscription}", self.prefix);
        if queue.strip_suffix(UNREAD).unwrap_or(&queue).ends_with(DEAD_LETTERS) {
            return Err(format!("the subscription {subscription:?} is called like a queue of dead letters"));
        }
        if queue.starts_with("amq.") {
            return Err(format!("the queue {queue:?} would be called like one of the broker's own"));
        }
        Ok(queue)
    }

    /// The queue of the dead letters of a queue.
    pub(crate) fn dead_letters_of(queue: &str) -> String {
        format!("{queue}{DEAD_LETTERS}")
    }

    /// The queue of dead letters that broke the connection of each consumer.
    pub(crate) fn unread_of(dead_letters: &str) -> String {
        format!("{dead_letters}{UNREAD}")
    }
}

/// Whether it is the topic of what is addressed to one service, or the name of the subscription to it.
pub(crate) fn is_service(topic: &str) -> bool {
    topic.starts_with(SERVICE)
}

/// Checks a topic of a subscription. `*` and `#` as whole words would be patterns to the broker.
pub(crate) fn check_topic(topic: &str) -> Result<(), String> {
    if topic.len() > TOPIC_BYTES_MAX {
        return Err(format!("a topic of {} bytes is longer than {TOPIC_BYTES_MAX}", topic.len()));
    }
    if topic.split('.').any(|word| word == "*" || word == "#") {
        return Err(format!("the topic {topic:?} is a pattern to the broker; name the topics one by one"));
    }
    Ok(())
}

fn check(what: &str, text: &str, bytes_max: usize) -> Result<(), String> {
    if text.len() > bytes_max {
        return Err(format!("{what} has {} bytes; at most {bytes_max} are allowed", text.len()));
    }
    match text.chars().find(|char| !(char.is_ascii_alphanumeric() || "_.-".contains(*char))) {
        Some(char) => Err(format!("{what} {text:?} contains {char:?}; use ASCII letters, digits, `_`, `.` and `-`")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_the_prefix() {
        let names = Names::new("shop.").unwrap();
        assert_eq!(names.events(), "shop.events");
        assert_eq!(names.dead_letters(), "shop.dead-letters");
        assert_eq!(names.queue("payments").unwrap(), "shop.payments");
        assert_eq!(names.queue("service:payments").unwrap(), "shop.service:payments");
        assert_eq!(names.exchange("payments"), "shop.events");
        assert_eq!(names.exchange(&saga_core::transport::service_topic("payments")), "shop.services");
        assert_eq!(Names::dead_letters_of("shop.payments"), "shop.payments.dead-letters");
        assert_eq!(Names::unread_of("shop.payments.dead-letters"), "shop.payments.dead-letters.unread");
    }

    #[test]
    fn bad_names_are_refused_with_the_reason() {
        let check = |problem: Result<(), String>, says: &str| {
            let problem = problem.expect_err(says);
            assert!(problem.contains(says), "{problem}");
        };
        check(Names::new("a b").map(drop), "contains ' '");
        check(Names::new("amq.x").map(drop), "the broker's own");
        check(Names::new(&"x".repeat(65)).map(drop), "65 bytes");
        let names = Names::new("").unwrap();
        check(names.queue("").map(drop), "needs a name");
        check(names.queue("service:a:b").map(drop), "contains ':'");
        check(names.queue("a.dead-letters").map(drop), "a queue of dead letters");
        check(names.queue("a.dead-letters.unread").map(drop), "a queue of dead letters");
        check(names.queue("amq.gen").map(drop), "the broker's own");
        check(names.queue("a\"b").map(drop), "contains");
        check(check_topic("orders.*"), "a pattern");
        check(check_topic("#"), "a pattern");
        check(check_topic(&"x".repeat(256)), "longer than 255");
        check_topic("orders#1.a*").unwrap();
    }
}
