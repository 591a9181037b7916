//! The floor of Kafka: its client without a transport, set as the transport sets it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer as _, ProducerContext, ThreadedProducer};
use tokio::sync::oneshot;

use super::brokers::{PARTITIONS, SESSION_TIMEOUT};
use crate::clock::Stopwatch;
use crate::messages::receipt::pause;
use crate::messages::{CALL, body};

/// How long anything may take before something is broken.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

/// Publishes records, and returns how many a second the broker confirmed. At most as many are unconfirmed at a time as the relay gives the
/// transport in one call.
pub(super) async fn publish(brokers: &str, topic: &str, messages: u32, bytes: usize) -> Result<f64> {
    let producer = producer(brokers, topic).await?;
    let body = body(bytes);
    let watch = Stopwatch::started();
    let mut waiting = FuturesUnordered::new();
    for number in 0..messages {
        while waiting.len() >= CALL as usize {
            confirmed(waiting.next().await)?;
        }
        waiting.push(send(&producer, topic, number, &body)?);
    }
    while !waiting.is_empty() {
        confirmed(waiting.next().await)?;
    }
    Ok(f64::from(messages) / watch.elapsed().as_secs_f64())
}

/// Hands each confirmation to who waits for it.
struct Confirms;

type Answer = Result<(), KafkaError>;

impl ClientContext for Confirms {}

impl ProducerContext for Confirms {
    type DeliveryOpaque = Box<oneshot::Sender<Answer>>;

    fn delivery(&self, result: &DeliveryResult<'_>, waiting: Self::DeliveryOpaque) {
        // If the receiver is gone, the benchmark has failed already.
        _ = waiting.send(result.as_ref().map(drop).map_err(|(error, _)| error.clone()));
    }
}

fn confirmed(answer: Option<Result<Answer, oneshot::error::RecvError>>) -> Result<()> {
    Ok(answer.context("no confirm came")???)
}

/// Receives records that lie in the topic, and returns how many a second, from the first on. It commits their offsets a call's worth at a time.
pub(super) async fn receive(brokers: &str, topic: &str, messages: u32, bytes: usize) -> Result<f64> {
    publish(brokers, topic, messages, bytes).await?;
    let consumer = consumer(brokers, topic)?;
    let receiving = tokio::task::spawn_blocking(move || {
        let (mut came, mut received, mut watch) = (0, 0, None);
        let mut silence = Stopwatch::started();
        while came < messages {
            let Some(record) = consumer.poll(LOOK) else {
                // Nothing is returned either when partitions were assigned.
                ensure!(silence.elapsed() < PATIENCE, "only {came} of {messages} records came");
                continue;
            };
            silence = Stopwatch::started();
            let record = record?.detach();
            received += record.payload().map_or(0, <[u8]>::len);
            watch.get_or_insert_with(Stopwatch::started);
            came += 1;
            if came % CALL == 0 || came == messages {
                consumer.commit_consumer_state(CommitMode::Sync)?;
            }
        }
        ensure!(received == messages as usize * bytes, "the records are not as they were sent");
        let watch = watch.context("nothing came")?;
        Ok(f64::from(messages - 1) / watch.elapsed().as_secs_f64())
    });
    receiving.await?
}

/// From sending to receiving, one record at a time, in milliseconds.
pub(super) async fn receipts(brokers: &str, topic: &str, messages: u32, bytes: usize) -> Result<Vec<f64>> {
    let producer = producer(brokers, topic).await?;
    let consumer = Arc::new(consumer(brokers, topic)?);
    let body = body(bytes);
    let mut took = Vec::new();
    // The first one comes when the group has settled.
    for number in 0..=messages {
        tokio::time::sleep(pause(number)).await;
        let watch = Stopwatch::started();
        let answer = send(&producer, topic, number, &body)?;
        let receiving = Arc::clone(&consumer);
        tokio::task::spawn_blocking(move || receive_one(&receiving)).await??;
        took.push(watch.elapsed().as_secs_f64() * 1e3);
        confirmed(Some(answer.await))?;
    }
    Ok(took.split_off(1))
}

fn receive_one(consumer: &BaseConsumer) -> Result<()> {
    let watch = Stopwatch::started();
    while watch.elapsed() < PATIENCE {
        if let Some(record) = consumer.poll(LOOK) {
            record?;
            return Ok(());
        }
    }
    bail!("a record did not arrive")
}

/// A producer that knows a new topic, as a transport that was used does.
async fn producer(brokers: &str, topic: &str) -> Result<ThreadedProducer<Confirms>> {
    create(brokers, topic).await?;
    let mut config = config(brokers);
    config.set("enable.idempotence", "true").set("acks", "all").set("linger.ms", "1");
    let producer: ThreadedProducer<Confirms> = config.create_with_context(Confirms)?;
    producer.client().fetch_metadata(Some(topic), PATIENCE)?;
    Ok(producer)
}

fn send(
    producer: &ThreadedProducer<Confirms>,
    topic: &str,
    number: u32,
    body: &[u8],
) -> Result<oneshot::Receiver<Answer>> {
    let key = format!("order-{number}");
    let (sender, answer) = oneshot::channel();
    let record = BaseRecord::with_opaque_to(topic, Box::new(sender)).key(&key).payload(body);
    producer.send(record).map_err(|(error, _)| error)?;
    Ok(answer)
}

fn consumer(brokers: &str, topic: &str) -> Result<BaseConsumer> {
    let mut config = config(brokers);
    config.set("group.id", topic).set("enable.auto.commit", "false").set("auto.offset.reset", "earliest");
    config.set("partition.assignment.strategy", "cooperative-sticky");
    config.set("session.timeout.ms", SESSION_TIMEOUT.as_millis().to_string());
    let consumer: BaseConsumer = config.create()?;
    consumer.subscribe(&[topic])?;
    Ok(consumer)
}

fn config(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers);
    config
}

async fn create(brokers: &str, topic: &str) -> Result<()> {
    let admin: AdminClient<DefaultClientContext> = config(brokers).create()?;
    let new = [NewTopic::new(topic, i32::from(PARTITIONS), TopicReplication::Fixed(-1))];
    for created in admin.create_topics(&new, &AdminOptions::new()).await? {
        created.map_err(|(topic, code)| anyhow::anyhow!("cannot create {topic}: {code}"))?;
    }
    Ok(())
}
