//! What is written beside a record that was given up, so that it can be read as it was sent.

use saga_core::transport::DeadLetterInfo;

use crate::wire::record::Record;
use crate::wire::wire::Outgoing;

const TOPIC: &str = "saga-dead-letter-topic";
const PARTITION: &str = "saga-dead-letter-partition";
const OFFSET: &str = "saga-dead-letter-offset";
const REASON: &str = "saga-dead-letter-reason";
const DELIVERIES: &str = "saga-dead-letter-deliveries";
const NAMES: [&str; 5] = [TOPIC, PARTITION, OFFSET, REASON, DELIVERIES];
/// The only reason for which this transport gives a record up.
const REJECTED: &str = "rejected";
const UNKNOWN: &str = "unknown";

/// The record of a dead letter, for this topic.
pub(crate) fn of(record: &Record, topic: &str, deliveries: u32) -> Outgoing {
    let mut headers = record.headers.clone();
    headers.retain(|(name, _)| !NAMES.contains(&name.as_str()));
    let texts = [
        (TOPIC, record.topic.clone()),
        (PARTITION, record.partition.to_string()),
        (OFFSET, record.offset.to_string()),
        (REASON, REJECTED.to_owned()),
        (DELIVERIES, deliveries.to_string()),
    ];
    headers.extend(texts.map(|(name, text)| (name.to_owned(), Some(text.into_bytes()))));
    Outgoing {
        topic: topic.to_owned(),
        is_addressed: true,
        key: record.key.clone(),
        headers,
        payload: record.payload.clone(),
    }
}

/// The record as it was before it was given up, and why it was.
pub(crate) fn read(letter: &Record) -> (Record, DeadLetterInfo) {
    let text = |name| letter.text(name).ok().flatten();
    let number = |name| text(name).and_then(|text| text.parse().ok());
    let info = DeadLetterInfo {
        queue: text(TOPIC).unwrap_or(&letter.topic).to_owned(),
        reason: text(REASON).unwrap_or(UNKNOWN).to_owned(),
        deliveries: number(DELIVERIES).unwrap_or(1).max(1),
    };
    let mut record = letter.clone();
    record.topic.clone_from(&info.queue);
    record.headers.retain(|(name, _)| !NAMES.contains(&name.as_str()));
    (record, info)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(headers: Vec<(String, Option<Vec<u8>>)>) -> Record {
        Record {
            topic: "saga.orders".to_owned(),
            partition: 3,
            offset: 17,
            key: Some(b"k".to_vec()),
            payload: None,
            headers,
            timestamp: Some(5),
        }
    }

    /// What a broker keeps of a record, in another topic.
    fn kept(sent: Outgoing) -> Record {
        let Outgoing { topic, key, headers, payload, .. } = sent;
        Record { topic, partition: 0, offset: 0, key, payload, headers, timestamp: Some(9) }
    }

    #[test]
    fn a_dead_letter_is_read_as_it_was_sent() {
        let given_up = record(vec![("type".to_owned(), Some(b"OrderPlaced".to_vec())), ("x".to_owned(), None)]);
        let (read, info) = read(&kept(of(&given_up, "saga.a.dead-letters", 21)));
        assert_eq!(
            (read.topic, read.key, read.payload, read.headers),
            (given_up.topic, given_up.key, None, given_up.headers)
        );
        assert_eq!(info, DeadLetterInfo { queue: "saga.orders".into(), reason: "rejected".into(), deliveries: 21 });
    }

    #[test]
    fn the_headers_of_a_sender_are_not_believed() {
        let forged = record(vec![(REASON.to_owned(), Some(b"forged".to_vec()))]);
        let (_, info) = read(&kept(of(&forged, "saga.a.dead-letters", 2)));
        assert_eq!(info.reason, "rejected");
        // A record that somebody else wrote into the topic.
        let (read, info) = read(&record(Vec::new()));
        assert_eq!((read.topic.as_str(), info.reason.as_str(), info.deliveries), ("saga.orders", UNKNOWN, 1));
    }
}
