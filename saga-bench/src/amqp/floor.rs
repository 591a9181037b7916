//! The floor: bare lapin, which sends the same bodies without an outbox.

use anyhow::{Context as _, Result, ensure};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer};

use super::servers::{CONFIRM_WINDOW, Place};
use crate::clock::Stopwatch;
use crate::messages::{EVENT, TOPIC, body};

const PERSISTENT: u8 = 2;
/// The queue of the subscription that every place has.
const QUEUE: &str = "bench.receiver";

/// Publishes so many persistent messages on one channel, and returns the confirmed messages a second.
pub(super) async fn publish(place: &Place, messages: u32, bytes: usize) -> Result<f64> {
    let (_connection, channel) = channel(place).await?;
    let body = body(bytes);
    let watch = Stopwatch::started();
    let mut waiting = FuturesUnordered::new();
    for number in 0..messages {
        while waiting.len() >= CONFIRM_WINDOW {
            confirmed(waiting.next().await)?;
        }
        waiting.push(publish_one(&channel, number, &body).await?);
    }
    while !waiting.is_empty() {
        confirmed(waiting.next().await)?;
    }
    Ok(f64::from(messages) / watch.elapsed().as_secs_f64())
}

/// From publishing to receiving, one message at a time, in milliseconds.
pub(super) async fn receipts(place: &Place, messages: u32, bytes: usize) -> Result<Vec<f64>> {
    let (_connection, channel) = channel(place).await?;
    let (_other, mut consumer) = consumer(place).await?;
    let body = body(bytes);
    let mut took = Vec::new();
    for number in 0..messages {
        let watch = Stopwatch::started();
        let confirm = publish_one(&channel, number, &body).await?;
        let delivery = consumer.next().await.context("the subscription ended")??;
        took.push(watch.elapsed().as_secs_f64() * 1e3);
        confirmed(Some(confirm.await))?;
        delivery.ack(BasicAckOptions::default()).await?;
    }
    Ok(took)
}

async fn channel(place: &Place) -> Result<(Connection, Channel)> {
    let connection = Connection::connect(&place.broker_url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    Ok((connection, channel))
}

async fn consumer(place: &Place) -> Result<(Connection, Consumer)> {
    let connection = Connection::connect(&place.broker_url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.basic_qos(1, BasicQosOptions::default()).await?;
    let consume = BasicConsumeOptions::default();
    let consumer = channel.basic_consume(QUEUE.into(), "".into(), consume, FieldTable::default()).await?;
    Ok((connection, consumer))
}

async fn publish_one(
    channel: &Channel,
    number: u32,
    body: &[u8],
) -> Result<impl Future<Output = lapin::Result<Confirmation>> + use<>> {
    let properties = BasicProperties::default()
        .with_message_id(number.to_string().into())
        .with_type(EVENT.into())
        .with_delivery_mode(PERSISTENT);
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    Ok(channel.basic_publish(Place::exchange().into(), TOPIC.into(), options, body, properties).await?)
}

fn confirmed(answer: Option<lapin::Result<Confirmation>>) -> Result<()> {
    let answer = answer.context("no confirm came")??;
    ensure!(matches!(answer, Confirmation::Ack(None)), "the broker did not take a message: {answer:?}");
    Ok(())
}
