//! The names of queues and topics.

use sha2::{Digest as _, Sha256};

use crate::text::short;

/// The longest prefix, in bytes: behind it there must be room for a hash.
const PREFIX_BYTES_MAX: usize = 24;
/// The longest name of a queue, in bytes, with its ending: a limit of SQS.
const QUEUE_BYTES_MAX: usize = 80;
/// The longest name of a topic, in bytes, with its ending: a limit of SNS.
const TOPIC_BYTES_MAX: usize = 256;
/// The longest text that a name is made of, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// What the name of each FIFO queue and topic has to end with.
const FIFO: &str = ".fifo";
/// What the name of a queue of dead letters ends with, before [`FIFO`].
const DEAD_LETTERS: &str = "-dead-letters";
/// What the topic of a service begins with.
const SERVICE: &str = "service:";
/// What is between the beginning of a text that is too long and its hash. An escaped byte has hexadecimal digits behind its `_`.
const CUT: &str = "__";
/// How many bytes of the hash are in a name.
const HASH_BYTES: usize = 16;

/// The names of queues and topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Result<Self, String> {
        if prefix.is_empty() || prefix.len() > PREFIX_BYTES_MAX {
            return Err(format!("the prefix has {} bytes; 1 to {PREFIX_BYTES_MAX} are allowed", prefix.len()));
        }
        if let Some(char) = prefix.chars().find(|char| !char.is_ascii_alphanumeric() && *char != '-') {
            return Err(format!("the prefix {prefix:?} contains {char:?}; use ASCII letters, digits and `-`"));
        }
        Ok(Self { prefix: format!("{prefix}-") })
    }

    /// What all names begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The queue of a subscription.
    pub(crate) fn queue(&self, subscription: &str) -> Result<String, String> {
        Ok(format!("{}{FIFO}", self.stem(subscription)?))
    }

    /// The queue of the dead letters of a subscription.
    pub(crate) fn dead_letters(&self, subscription: &str) -> Result<String, String> {
        Ok(format!("{}{DEAD_LETTERS}{FIFO}", self.stem(subscription)?))
    }

    /// The SNS topic of a topic that is no service's.
    pub(crate) fn topic(&self, topic: &str) -> Result<String, String> {
        check("the topic", topic)?;
        Ok(format!("{}{FIFO}", self.fitting(topic, TOPIC_BYTES_MAX - FIFO.len())))
    }

    /// The name of a queue without its ending, which the queue of its dead letters shares.
    fn stem(&self, subscription: &str) -> Result<String, String> {
        check("the name of the subscription", subscription)?;
        if subscription.ends_with(DEAD_LETTERS) {
            return Err(format!("the subscription {:?} is called like one of dead letters", short(subscription)));
        }
        Ok(self.fitting(subscription, QUEUE_BYTES_MAX - DEAD_LETTERS.len() - FIFO.len()))
    }

    /// The prefix and the text, or the text's beginning and its hash where it is too long.
    fn fitting(&self, text: &str, bytes_max: usize) -> String {
        let whole = format!("{}{}", self.prefix, escape(text));
        if whole.len() <= bytes_max {
            return whole;
        }
        let hash = hex(&Sha256::digest(text)[..HASH_BYTES]);
        let mut cut = bytes_max - CUT.len() - hash.len();
        // Not between a `_` and its digits.
        if let Some(escaped) = whole[..cut].rfind('_').filter(|at| cut - at < 3) {
            cut = escaped;
        }
        format!("{}{CUT}{hash}", &whole[..cut])
    }
}

/// Whether it is the topic of what is addressed to one service.
pub(crate) fn is_service(topic: &str) -> bool {
    topic.starts_with(SERVICE)
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

fn check(what: &str, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(format!("{what} is empty"));
    }
    crate::text::at_most(what, text.len(), TEXT_BYTES_MAX)
}

/// Writes each byte that SQS does not allow, and `_` itself, as `_` and two hexadecimal digits.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            escaped.push(byte.into());
        } else {
            escaped.push('_');
            escaped.push_str(&hex(&[byte]).to_ascii_uppercase());
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names() -> Names {
        Names::new("shop").unwrap()
    }

    #[test]
    fn names_follow_from_the_prefix() {
        assert_eq!(names().queue("service:payments").unwrap(), "shop-service_3Apayments.fifo");
        assert_eq!(names().dead_letters("service:payments").unwrap(), "shop-service_3Apayments-dead-letters.fifo");
        assert_eq!(names().topic("order.placed").unwrap(), "shop-order_2Eplaced.fifo");
    }

    #[test]
    fn a_long_name_is_cut_and_hashed_within_the_limit() {
        let names = Names::new(&"x".repeat(PREFIX_BYTES_MAX)).unwrap();
        let room = QUEUE_BYTES_MAX - DEAD_LETTERS.len() - FIFO.len() - names.prefix().len();
        let whole = names.dead_letters(&"a".repeat(room)).unwrap();
        assert_eq!((whole.len(), whole.contains(CUT)), (QUEUE_BYTES_MAX, false), "{whole}");
        let mut all = BTreeSet::new();
        for text in ["a".repeat(room + 1), "a".repeat(room + 2), "ü".repeat(room), format!("{}:", "a".repeat(room))] {
            for name in [names.queue(&text).unwrap(), names.dead_letters(&text).unwrap()] {
                assert!(name.len() <= QUEUE_BYTES_MAX && name.contains(CUT), "{name}");
                assert!(all.insert(name));
            }
        }
        let topics =
            ["a".repeat(300), "ü".repeat(300), format!("{}b", "a".repeat(299))].map(|text| names.topic(&text).unwrap());
        assert!(topics.iter().all(|name| name.len() <= TOPIC_BYTES_MAX), "{topics:?}");
        assert_eq!(BTreeSet::from(topics).len(), 3);
    }

    #[test]
    fn bad_names_are_refused_with_the_reason() {
        let check = |problem: Result<(), String>, says: &str| {
            let problem = problem.expect_err(says);
            assert!(problem.contains(says), "{problem}");
        };
        check(Names::new("").map(drop), "0 bytes");
        check(Names::new(&"x".repeat(25)).map(drop), "25 bytes");
        check(Names::new("a.b").map(drop), "contains '.'");
        check(names().queue("").map(drop), "is empty");
        check(names().topic("").map(drop), "is empty");
        check(names().queue("a-dead-letters").map(drop), "one of dead letters");
        check(names().topic(&"x".repeat(5000)).map(drop), "at most 4096");
    }
}
