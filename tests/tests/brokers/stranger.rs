//! Somebody who knows the broker, and not the rules.

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use uuid::Uuid;

/// The queue of the host.
pub(crate) const QUEUE: &str = "saga.service:payments";

pub(crate) struct Stranger {
    _connection: Connection,
    channel: Channel,
}

impl Stranger {
    pub(crate) async fn at(url: &str) -> Self {
        let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        Self { _connection: connection, channel }
    }

    /// Sends to the service of the payments, and waits until the broker has it.
    pub(crate) async fn send(&self, properties: BasicProperties, body: &[u8]) {
        let options = BasicPublishOptions { mandatory: true, ..Default::default() };
        let (exchange, key) = ("saga.services".into(), "service:payments".into());
        let confirm = self.channel.basic_publish(exchange, key, options, body, properties).await.unwrap();
        assert!(matches!(confirm.await.unwrap(), Confirmation::Ack(None)), "the broker did not take the message");
    }

    /// How many messages wait in a queue, and how many receive from it.
    pub(crate) async fn count(&self, queue: &str) -> (u32, u32) {
        let options = QueueDeclareOptions { passive: true, durable: true, ..Default::default() };
        let queue = self.channel.queue_declare(queue.into(), options, FieldTable::default()).await.unwrap();
        (queue.message_count(), queue.consumer_count())
    }
}

pub(crate) fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}

/// A command as it should be: of this number, for the saga of this key.
pub(crate) fn command(number: u128, key: &str) -> BasicProperties {
    let headers = [
        ("saga-kind", text("command")),
        ("saga-key", text(&number.to_string())),
        ("saga-cause", text(key)),
        ("saga-step", text("charge-card")),
        ("saga-service", text("payments")),
        ("saga-reply-to", text("strangers")),
        // However far the clocks of two services are apart, what comes from the future is young.
        ("saga-committed-at", AMQPValue::LongLongInt(i64::MAX)),
    ];
    let mut table = FieldTable::default();
    for (name, value) in headers {
        table.insert(name.into(), value);
    }
    let id = Uuid::from_u128(number).to_string();
    BasicProperties::default().with_message_id(id.into()).with_type("charge-card".into()).with_headers(table)
}

/// The same, with this header in the place of the right one.
pub(crate) fn with(properties: &BasicProperties, name: &str, value: AMQPValue) -> BasicProperties {
    let mut headers = properties.headers().clone().unwrap_or_default();
    headers.insert(name.into(), value);
    properties.clone().with_headers(headers)
}
