//! The records in Kafka, as any client reads them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{BorrowedMessage, Headers as _};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::{ClientConfig, Message as _, Offset};
use saga_core::store::Timestamp;
use saga_tests::eventually;

use crate::outbox::Row;
use crate::page;

const PATIENCE: Duration = Duration::from_mins(1);
/// The connector's own headers begin so.
const OF_CONNECTOR: &str = "__debezium.";
/// A record with this header is one that the transport sent.
const OF_TRANSPORT: &str = "message-id";

/// A record without its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) topic: String,
    key: String,
    value: Vec<u8>,
    /// Without the connector's own.
    headers: BTreeMap<String, String>,
}

impl Record {
    /// What `docs/cdc.md` says a row becomes.
    pub(crate) fn of(row: &Row) -> Self {
        let topic = row.aggregatetype.strip_prefix("service:").unwrap_or(&row.aggregatetype);
        let headers = [
            ("id", row.id.to_string()),
            ("type", row.event_type.clone()),
            ("tenant", row.tenant.clone()),
            ("kind", row.kind.clone()),
            ("headers", row.headers.clone()),
            ("position", row.position.to_string()),
            ("committed_at", Timestamp(row.committed_at).to_string()),
        ];
        assert_eq!(headers.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>(), page::headers());
        Self {
            topic: format!("outbox.event.{topic}"),
            key: row.aggregateid.clone(),
            value: row.payload.clone(),
            headers: headers.map(|(name, value)| (name.to_owned(), value)).into(),
        }
    }

    fn read(message: &BorrowedMessage<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let headers = message.headers().unwrap().iter();
        let headers: Vec<_> =
            headers.map(|header| (header.key.to_owned(), text(header.value.unwrap_or_default()))).collect();
        let own = headers.into_iter().filter(|(name, _)| !name.starts_with(OF_CONNECTOR));
        Self {
            topic: message.topic().to_owned(),
            key: text(message.key().unwrap()),
            value: message.payload().unwrap_or_default().to_vec(),
            headers: own.collect(),
        }
    }

    fn id(&self) -> &str {
        &self.headers["id"]
    }
}

/// What connectors sent to the topics of these rows, once each row has a record: partition by partition, in their order.
pub(crate) async fn with_all(brokers: &str, rows: &[Row]) -> Vec<Record> {
    eventually("a record for each row", async || {
        let records = of_topics_of(brokers, rows).await;
        (without_record(rows, &records) == 0).then_some(records)
    })
    .await
}

/// How many of these rows have no record.
pub(crate) async fn unsent(brokers: &str, rows: &[Row]) -> usize {
    without_record(rows, &of_topics_of(brokers, rows).await)
}

async fn of_topics_of(brokers: &str, rows: &[Row]) -> Vec<Record> {
    let topics: BTreeSet<String> = rows.iter().map(|row| Record::of(row).topic).collect();
    let brokers = brokers.to_owned();
    tokio::task::spawn_blocking(move || read(&brokers, &topics)).await.unwrap()
}

fn without_record(rows: &[Row], records: &[Record]) -> usize {
    let ids: BTreeSet<&str> = records.iter().map(Record::id).collect();
    rows.iter().filter(|row| !ids.contains(&*row.id.to_string())).count()
}

/// Each row has its record, and no record is anything else. A record may be there twice.
pub(crate) fn assert_are_of(records: &[Record], rows: &[Row]) {
    let expected: HashMap<String, Record> = rows.iter().map(|row| (row.id.to_string(), Record::of(row))).collect();
    for record in records {
        assert_eq!(Some(record), expected.get(record.id()), "it is of no row");
    }
    let there: BTreeSet<&str> = records.iter().map(Record::id).collect();
    assert_eq!(there.len(), expected.len(), "a row has no record");
}

/// The first records of the rows under a key have the order of the rows' positions.
pub(crate) fn assert_keep_order(records: &[Record]) {
    let (mut seen, mut last) = (BTreeSet::new(), HashMap::new());
    for record in records.iter().filter(|record| seen.insert(record.id())) {
        let position: u64 = record.headers["position"].parse().unwrap();
        let key = (&record.topic, &record.key, &record.headers["tenant"]);
        let before = last.insert(key, position);
        assert!(before < Some(position), "{key:?}: {position} came after {before:?}");
    }
}

/// Everything that is in the topics that are there.
fn read(brokers: &str, topics: &BTreeSet<String>) -> Vec<Record> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("group.id", "reader").set("enable.auto.commit", "false");
    let consumer: BaseConsumer = config.create().unwrap();
    let metadata = consumer.fetch_metadata(None, PATIENCE).unwrap();
    let (mut assigned, mut ends) = (TopicPartitionList::new(), HashMap::new());
    for topic in metadata.topics().iter().filter(|topic| topics.contains(topic.name())) {
        for partition in topic.partitions() {
            let (begin, end) = consumer.fetch_watermarks(topic.name(), partition.id(), PATIENCE).unwrap();
            if begin < end {
                assigned.add_partition_offset(topic.name(), partition.id(), Offset::Beginning).unwrap();
                ends.insert((topic.name().to_owned(), partition.id()), end);
            }
        }
    }
    consumer.assign(&assigned).unwrap();
    let mut records: BTreeMap<(String, i32, i64), Record> = BTreeMap::new();
    while !ends.is_empty() {
        let message = consumer.poll(PATIENCE).expect("a record comes").unwrap();
        let place = (message.topic().to_owned(), message.partition());
        if ends.get(&place).is_some_and(|end| message.offset() + 1 >= *end) {
            ends.remove(&place);
        }
        records.insert((place.0, place.1, message.offset()), Record::read(&message));
    }
    records.into_values().filter(|record| !record.headers.contains_key(OF_TRANSPORT)).collect()
}
