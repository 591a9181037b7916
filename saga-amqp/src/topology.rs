//! What the transport needs in the broker, and how it is made or looked for.
//!
//! # Cancel safety
//! Every declaration may be repeated: dropping one leaves parts of the topology made, and the next one makes the rest.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, LongString};
use lapin::{Channel, Connection, Error, ExchangeKind};
use saga_core::transport::TransportError;

use crate::error::{failed, too_late};
use crate::names::Names;
use crate::options::{AmqpOptions, Topology};
use saga_core::__private::log;

/// What one part of a process needs.
#[derive(Debug, Clone)]
pub(crate) struct Needs {
    pub(crate) names: Names,
    pub(crate) queues: Queues,
}

/// Which queues that are.
#[derive(Debug, Clone)]
pub(crate) enum Queues {
    /// The publisher needs none.
    None,
    /// A subscription's own, bound to its topics, and that of its dead letters.
    Subscription { queue: String, topics: Vec<String> },
    /// That of the dead letters of this queue.
    DeadLettersOf { queue: String },
}

/// Makes or looks for what is needed, on a channel of its own: a refusal closes the channel.
pub(crate) async fn prepare(
    connection: &Connection,
    options: &AmqpOptions,
    needs: &Needs,
) -> Result<(), TransportError> {
    if options.topology == Topology::None {
        return Ok(());
    }
    let limit = options.connect_timeout;
    match tokio::time::timeout(limit, prepare_all(connection, options, needs)).await {
        Ok(prepared) => prepared,
        Err(_) => Err(too_late("declare", "declare the exchanges and queues", limit)),
    }
}

async fn prepare_all(connection: &Connection, options: &AmqpOptions, needs: &Needs) -> Result<(), TransportError> {
    let channel = connection.create_channel().await.map_err(|error| failed("declare", "open a channel", &error))?;
    let work = Work { channel, is_passive: options.topology == Topology::Check };
    work.exchange(&needs.names.events(), ExchangeKind::Topic).await?;
    work.exchange(&needs.names.services(), ExchangeKind::Direct).await?;
    work.exchange(&needs.names.dead_letters(), ExchangeKind::Direct).await?;
    match &needs.queues {
        Queues::None => {}
        Queues::DeadLettersOf { queue } => work.dead_letters_of(queue, options, &needs.names).await?,
        Queues::Subscription { queue, topics } => {
            work.dead_letters_of(queue, options, &needs.names).await?;
            work.queue(queue, limited(options, &needs.names, queue)).await?;
            for topic in topics {
                work.bind(queue, &needs.names.exchange(topic), topic).await?;
            }
        }
    }
    Ok(())
}

fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments
}

/// A message that comes back too often is a dead letter, and leaves its queue only when the queue of dead letters has it.
fn limited(options: &AmqpOptions, names: &Names, queue: &str) -> FieldTable {
    let mut arguments = quorum();
    let limit = i32::try_from(options.delivery_limit).unwrap_or(i32::MAX);
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(limit));
    arguments.insert("x-dead-letter-exchange".into(), text(&names.dead_letters()));
    arguments.insert("x-dead-letter-routing-key".into(), text(queue));
    arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
    arguments.insert("x-overflow".into(), text("reject-publish"));
    arguments
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(LongString::from(value))
}

struct Work {
    channel: Channel,
    is_passive: bool,
}

impl Work {
    fn verb(&self) -> &'static str {
        if self.is_passive { "find" } else { "declare" }
    }

    /// The queue of dead letters of a queue, and the queue of those that cannot be received from there either.
    async fn dead_letters_of(&self, queue: &str, options: &AmqpOptions, names: &Names) -> Result<(), TransportError> {
        let dead_letters = Names::dead_letters_of(queue);
        let unread = Names::unread_of(&dead_letters);
        self.queue(&dead_letters, limited(options, names, &dead_letters)).await?;
        self.bind(&dead_letters, &names.dead_letters(), queue).await?;
        let count = self.queue(&unread, quorum()).await?;
        if count > 0 {
            log::warn!(queue = unread, count, "unreadable dead letters in the queue");
        }
        self.bind(&unread, &names.dead_letters(), &dead_letters).await
    }

    async fn exchange(&self, name: &str, kind: ExchangeKind) -> Result<(), TransportError> {
        let options = ExchangeDeclareOptions { passive: self.is_passive, durable: true, ..Default::default() };
        let declared = self.channel.exchange_declare(name.into(), kind, options, FieldTable::default()).await;
        declared.map_err(|error| self.refused(&format!("the exchange {name:?}"), &error))
    }

    /// Makes or finds a queue; answers how many messages wait in it.
    async fn queue(&self, name: &str, arguments: FieldTable) -> Result<u32, TransportError> {
        let options = QueueDeclareOptions { passive: self.is_passive, durable: true, ..Default::default() };
        let declared = self.channel.queue_declare(name.into(), options, arguments).await;
        let count = declared.map(|queue| queue.message_count());
        count.map_err(|error| self.refused(&format!("the queue {name:?}"), &error))
    }

    async fn bind(&self, queue: &str, exchange: &str, key: &str) -> Result<(), TransportError> {
        if self.is_passive {
            return Ok(());
        }
        let options = QueueBindOptions::default();
        let bound = self.channel.queue_bind(queue.into(), exchange.into(), key.into(), options, FieldTable::default());
        bound.await.map_err(|error| failed("declare", &format!("bind the queue {queue:?} to {exchange:?}"), &error))
    }

    fn refused(&self, what: &str, error: &Error) -> TransportError {
        failed("declare", &format!("{} {what}", self.verb()), error)
    }
}
