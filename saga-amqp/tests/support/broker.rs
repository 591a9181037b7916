use futures_util::StreamExt as _;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use saga_amqp::AmqpTransport;
use saga_servers::Management;

use super::wait;

/// A broker that somebody started for the tests.
pub(crate) struct Broker {
    pub url: String,
}

/// A message of a queue of dead letters.
#[derive(Debug)]
pub(crate) struct DeadLetter {
    pub payload: Vec<u8>,
    pub properties: BasicProperties,
}

impl Broker {
    /// The broker that the test command gives. Without one no test can be run, and none is skipped.
    pub(crate) fn shared() -> Self {
        Self { url: saga_servers::shared::amqp_url() }
    }

    /// The management interface of the shared broker.
    pub(crate) fn management() -> Management {
        Management::at(&saga_servers::shared::amqp_management_url()).expect("the address can be read")
    }

    /// A channel that confirms, beside all transports. The connection has to be kept.
    pub(crate) async fn channel(&self) -> (Connection, Channel) {
        let connection =
            Connection::connect(&self.url, ConnectionProperties::default()).await.expect("the broker is there");
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        (connection, channel)
    }

    /// Publishes to the exchange of events as a stranger does, and waits until the broker has it.
    pub(crate) async fn publish(
        &self,
        transport: &AmqpTransport,
        topic: &str,
        properties: BasicProperties,
        body: &[u8],
    ) {
        let (_connection, channel) = self.channel().await;
        let exchange = format!("{}events", transport.options().name_prefix());
        let options = BasicPublishOptions { mandatory: true, ..Default::default() };
        let confirm = channel.basic_publish(exchange.into(), topic.into(), options, body, properties).await.unwrap();
        assert!(
            matches!(confirm.await.unwrap(), lapin::Confirmation::Ack(None)),
            "the broker did not take the message"
        );
    }

    /// Takes this many dead letters of a subscription, waiting for them.
    pub(crate) async fn dead_letters_within(
        &self,
        transport: &AmqpTransport,
        subscription: &str,
        count: usize,
    ) -> Vec<DeadLetter> {
        let (_connection, channel) = self.channel().await;
        let queue = format!("{}{subscription}.dead-letters", transport.options().name_prefix());
        let options = BasicConsumeOptions::default();
        let mut consumer =
            channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await.unwrap();
        let mut letters = Vec::new();
        while letters.len() < count {
            let came = tokio::time::timeout(wait::PATIENCE, consumer.next()).await;
            let delivery = came.expect("a dead letter comes in time").expect("the queue is there").unwrap();
            delivery.acker.ack(BasicAckOptions::default()).await.unwrap();
            letters.push(DeadLetter { payload: delivery.data, properties: delivery.properties });
        }
        letters
    }

    /// The one dead letter of a subscription.
    pub(crate) async fn dead_letters(&self, transport: &AmqpTransport, subscription: &str) -> Vec<DeadLetter> {
        self.dead_letters_within(transport, subscription, 1).await
    }
}

/// Lets a queue that refuses what it has no room for hold about so many messages, and waits until it does.
pub(crate) async fn limit_queue(management: &Management, vhost: &str, queue: &str, messages: usize) {
    let pattern = format!("^{}$", queue.replace('.', "\\."));
    let policy = serde_json::json!({
        "pattern": pattern, "definition": { "max-length": messages }, "apply-to": "queues"
    });
    management.put(&format!("policies/{vhost}/{queue}"), &policy).await.expect("a policy can be set");
    // Not by an async closure: one that borrows cannot be part of what a harness answers.
    let path = format!("queues/{vhost}/{queue}");
    let applied = async {
        while management.get(&path).await.unwrap_or_default()["policy"] != queue {
            tokio::time::sleep(wait::LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(wait::PATIENCE, applied).await.expect("the policy is applied");
}

/// A prefix that nobody else has.
pub(crate) fn unique_prefix() -> String {
    format!("t{}.", uuid::Uuid::new_v4().simple())
}
