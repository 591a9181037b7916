//! One life of a subscription: a connection, a channel and a consumer, until one of them ends.
//!
//! # Cancel safety
//! A session that is dropped closes its connection, and what was not settled comes again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _};
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, BasicRejectOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, Consumer, Error, Event};
use saga_core::transport::{TransportError, TransportErrorKind};

use crate::connection::{Closing, open};
use crate::error::{describe, is_unreadable, not_served, too_late};
use crate::options::AmqpOptions;
use crate::topology::{Needs, prepare};
use crate::unsettled::Plan;

/// What a subscription needs to begin a session.
#[derive(Debug, Clone)]
pub(crate) struct Plans {
    pub(crate) options: AmqpOptions,
    pub(crate) needs: Needs,
    pub(crate) name: String,
    pub(crate) queue: String,
    /// Of dead letters: the queue that they were in.
    pub(crate) died_in: Option<String>,
}

/// How long the reason of an end may lag behind the end.
const REASON_LAG_MAX: Duration = Duration::from_millis(100);

/// A running session.
pub(crate) struct Session {
    connection: Closing,
    /// Which of the hosts it is connected to.
    pub(crate) host: usize,
    /// What the connection says of itself. A broken one is told to the consumer now as an error, now as a mere end.
    events: BoxStream<'static, Event>,
    channel: Channel,
    consumer: Consumer,
    /// How many messages it takes at a time.
    pub(crate) prefetch: u16,
    /// After so long without a message the broker is asked whether it is there.
    quiet_max: Duration,
    answer_max: Duration,
}

/// Why a session ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) why: String,
    /// Something came that the library cannot read, and took the connection along.
    pub(crate) is_unreadable: bool,
}

impl Session {
    pub(crate) async fn begin(plans: Arc<Plans>, prefetch: u16) -> Result<Self, TransportError> {
        let (plans, Plans { options, name, .. }) = (&*plans, &*plans);
        let (connection, host) = open(options, &format!("subscription {name}")).await?;
        let connection = Closing::of(connection);
        let begun = Self::begin_on(connection, host, plans, prefetch).await;
        begun.inspect_err(|_| options.turn.move_on(host))
    }

    async fn begin_on(connection: Closing, host: usize, plans: &Plans, prefetch: u16) -> Result<Self, TransportError> {
        let Plans { options, needs, queue, .. } = plans;
        let events = connection.events_listener().boxed();
        prepare(&connection, options, needs).await?;
        let doing = format!("receive from the queue {queue:?}");
        let consuming = async {
            let channel = connection.create_channel().await?;
            channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
            let consume = BasicConsumeOptions::default();
            let consumer =
                channel.basic_consume(queue.as_str().into(), "".into(), consume, FieldTable::default()).await?;
            Ok((channel, consumer))
        };
        match tokio::time::timeout(options.connect_timeout, consuming).await {
            Ok(Ok((channel, consumer))) => {
                let (quiet_max, answer_max) = (options.heartbeat, options.connect_timeout);
                Ok(Self { connection, host, events, channel, consumer, prefetch, quiet_max, answer_max })
            }
            Ok(Err(error)) => Err(not_served(&doing, &error)),
            Err(_) => Err(too_late("subscribe", &doing, options.connect_timeout)),
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The next delivery. Dropping this loses none.
    pub(crate) async fn next(&mut self) -> Result<Delivery, Ended> {
        loop {
            match tokio::time::timeout(self.quiet_max, self.consumer.next()).await {
                Ok(Some(Ok(delivery))) => return Ok(delivery),
                Ok(Some(Err(error))) => return Err(Ended::by(&error)),
                Ok(None) => return Err(self.reason().await),
                Err(_) => is_there(&self.channel, self.prefetch, self.answer_max).await?,
            }
        }
    }

    /// Why the consumer ended without an error of its own.
    async fn reason(&mut self) -> Ended {
        let error = self
            .events
            .by_ref()
            .filter_map(|event| std::future::ready(if let Event::Error(error) = event { Some(error) } else { None }));
        match tokio::time::timeout(REASON_LAG_MAX, std::pin::pin!(error).next()).await {
            Ok(Some(error)) => Ended::by(&error),
            _ => Ended {
                why: "the broker ended the subscription: its queue was deleted, or moved".to_owned(),
                is_unreadable: false,
            },
        }
    }

    /// A delivery that is here already.
    pub(crate) fn next_at_once(&mut self) -> Option<Delivery> {
        // An end of the stream is met again by the next wait.
        self.consumer.next().now_or_never()?.and_then(Result::ok)
    }

    /// Tells the broker what became of deliveries.
    pub(crate) async fn settle(&mut self, plan: Plan, timeout: Duration) -> Result<(), TransportError> {
        // Not the session itself: its stream of events cannot be shared between threads.
        let channel = &self.channel;
        let mut told = Vec::new();
        for tag in plan.rejects {
            // With `reject` the broker counts, and gives a message up in the end.
            let options = BasicRejectOptions { requeue: true };
            told.push(async move { channel.basic_reject(tag, options).await }.boxed());
        }
        let single = plan.singles.into_iter().map(|tag| (tag, false));
        for (tag, multiple) in plan.up_to.map(|tag| (tag, true)).into_iter().chain(single) {
            told.push(async move { channel.basic_ack(tag, BasicAckOptions { multiple }).await }.boxed());
        }
        // All are handed to the library by the first poll, in their order, so that dropping this leaves none behind.
        let all = futures_util::future::join_all(told);
        let doing = "settle messages";
        match tokio::time::timeout(timeout, all).await {
            Ok(answers) => {
                answers.into_iter().collect::<Result<(), Error>>().map_err(|error| unavailable(doing, &error))
            }
            Err(_) => Err(too_late("settle", doing, timeout)),
        }
    }
}

/// Asks the broker for what holds already, on the channel of the consumer. When the library's thread that reads from the
/// connection has died, nothing else tells: the connection looks open, and its heartbeats are that thread's as well.
async fn is_there(channel: &Channel, prefetch: u16, limit: Duration) -> Result<(), Ended> {
    match tokio::time::timeout(limit, channel.basic_qos(prefetch, BasicQosOptions::default())).await {
        Ok(answer) => answer.map_err(|error| Ended::by(&error)),
        Err(_) => Err(Ended::silent(limit)),
    }
}

impl Ended {
    fn by(error: &Error) -> Self {
        Self { why: error.to_string(), is_unreadable: is_unreadable(error) }
    }

    fn silent(limit: Duration) -> Self {
        Self { why: format!("the broker did not answer within {limit:?}"), is_unreadable: false }
    }
}

fn unavailable(doing: &str, error: &Error) -> TransportError {
    TransportError::new(TransportErrorKind::Unavailable, "settle", describe(doing, error))
}
