//! A second copy of every message.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
    ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Confirmation, Connection, ConnectionProperties, ExchangeKind};
use tokio::time::sleep;

use super::{Count, Counts};
use crate::plan::Role;
use crate::world::Diary;

const QUEUE: &str = "chaos.copies";
/// The mark of a copy, which is not copied again.
const MARK: &str = "x-chaos-copy";
const RECONNECT_AFTER: Duration = Duration::from_millis(500);
/// How long every other copy is kept back.
const DELAY: Duration = Duration::from_secs(3);

/// Has every message come a second time, at once or a while later, for as long as it runs.
pub(crate) async fn copy_everything(url: String, counts: Arc<Counts>, diary: Arc<Diary>) {
    let mut is_said = false;
    loop {
        let before = counts.of(Count::Copies);
        let copied = copy(&url, &counts).await;
        is_said &= counts.of(Count::Copies) == before;
        if let (Err(error), false) = (copied, is_said) {
            diary.say(format_args!("the copier has lost the broker: {error}"));
            is_said = true;
        }
        sleep(RECONNECT_AFTER).await;
    }
}

async fn copy(url: &str, counts: &Arc<Counts>) -> lapin::Result<()> {
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    channel.basic_qos(500, BasicQosOptions::default()).await?;
    // Messages that are sent while the copier is not connected wait here.
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(QUEUE.into(), durable, FieldTable::default()).await?;
    for (exchange, kind, topics) in [
        ("saga.events", ExchangeKind::Topic, vec!["#".to_owned()]),
        ("saga.services", ExchangeKind::Direct, Role::ALL.map(|role| format!("service:{}", role.name())).to_vec()),
    ] {
        let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        channel.exchange_declare(exchange.into(), kind, durable, FieldTable::default()).await?;
        for topic in topics {
            let options = QueueBindOptions::default();
            channel
                .queue_bind(QUEUE.into(), exchange.into(), topic.as_str().into(), options, FieldTable::default())
                .await?;
        }
    }
    let options = BasicConsumeOptions::default();
    let mut deliveries = channel.basic_consume(QUEUE.into(), "".into(), options, FieldTable::default()).await?;
    let mut nth = 0_u64;
    while let Some(delivery) = deliveries.next().await {
        let delivery = delivery?;
        let mut headers = delivery.properties.headers().clone().unwrap_or_default();
        if headers.inner().contains_key(MARK) {
            delivery.acker.ack(BasicAckOptions::default()).await?;
            continue;
        }
        headers.insert(MARK.into(), AMQPValue::Boolean(true));
        nth += 1;
        let (channel, counts, is_late) = (channel.clone(), Arc::clone(counts), nth.is_multiple_of(2));
        // One that fails is delivered again on the next connection.
        tokio::spawn(async move {
            if is_late {
                sleep(DELAY).await;
            }
            let properties = delivery.properties.with_headers(headers);
            let (exchange, topic) = (delivery.exchange, delivery.routing_key);
            let options = BasicPublishOptions::default();
            let confirm = channel.basic_publish(exchange, topic, options, &delivery.data, properties).await?;
            // A queue that is full takes no copy.
            if !matches!(confirm.await?, Confirmation::Nack(_)) {
                counts.add(Count::Copies);
            }
            delivery.acker.ack(BasicAckOptions::default()).await
        });
    }
    Ok(())
}
