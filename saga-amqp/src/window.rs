//! Sending over one channel with a window of confirms.
//!
//! # Cancel safety
//! A dropped send leaves each of its messages sent or not sent. Its channel must not be used again: confirms of the old
//! messages would still be under way.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use lapin::options::BasicPublishOptions;
use lapin::{Channel, Confirmation, Error};

use crate::names::Names;
use crate::wire::Outgoing;

/// What became of one message.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    /// The broker has it.
    Confirmed,
    /// The broker has it, and no queue takes it.
    Returned,
    /// The broker says that it could not take it.
    Refused,
    /// The channel or the connection broke before an answer came.
    Broken(Error),
    /// No answer came in time.
    Silent,
    /// It was not sent: something before it broke.
    NotSent,
}

type Waiting<'a> = FuturesUnordered<BoxFuture<'a, (usize, Result<Confirmation, Error>)>>;

/// Sends messages over a channel that nobody else uses meanwhile. The channel may be used again only if
/// every message was answered.
///
/// Which message was returned is told by its id and its routing key, and only when every message is answered: the
/// library hands a returned message to whichever confirm comes next, which need not be its own.
pub(crate) async fn send(
    channel: &Channel,
    names: &Names,
    messages: &[&Outgoing],
    window: usize,
    timeout: Duration,
) -> Vec<Fate> {
    let mut fates = vec![Fate::NotSent; messages.len()];
    let mut returned = HashSet::new();
    let mut waiting = Waiting::new();
    let mut is_broken = false;
    for (index, message) in messages.iter().enumerate() {
        while waiting.len() >= window && !is_broken {
            is_broken = !answer(&mut waiting, &mut fates, &mut returned, timeout).await;
        }
        if is_broken {
            break;
        }
        let mut sending: BoxFuture<'_, _> = Box::pin(publish(channel, names, message, index));
        // The first poll hands the message to the library, so the messages go in their order; a set of futures alone
        // promises none.
        match futures_util::poll!(&mut sending) {
            std::task::Poll::Pending => {
                fates[index] = Fate::Silent;
                waiting.push(sending);
            }
            std::task::Poll::Ready((index, answer)) => {
                is_broken = answer.is_err();
                note(index, answer, &mut fates, &mut returned);
            }
        }
    }
    while !waiting.is_empty() && answer(&mut waiting, &mut fates, &mut returned, timeout).await {}
    for (fate, message) in fates.iter_mut().zip(messages) {
        if matches!(fate, Fate::Confirmed) && returned.contains(&identity(message)) {
            *fate = Fate::Returned;
        }
    }
    fates
}

async fn publish(
    channel: &Channel,
    names: &Names,
    message: &Outgoing,
    index: usize,
) -> (usize, Result<Confirmation, Error>) {
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    let key = message.routing_key.clone();
    let exchange = names.exchange(key.as_str());
    let confirm =
        channel.basic_publish(exchange.into(), key, options, &message.payload, message.properties.clone()).await;
    match confirm {
        Ok(confirm) => (index, confirm.await),
        Err(error) => (index, Err(error)),
    }
}

/// Waits for one more answer; `false` when none came in time.
async fn answer(
    waiting: &mut Waiting<'_>,
    fates: &mut [Fate],
    returned: &mut HashSet<(String, String)>,
    timeout: Duration,
) -> bool {
    match tokio::time::timeout(timeout, waiting.next()).await {
        Ok(Some((index, answer))) => {
            note(index, answer, fates, returned);
            true
        }
        Ok(None) => true,
        Err(_) => false,
    }
}

fn note(
    index: usize,
    answer: Result<Confirmation, Error>,
    fates: &mut [Fate],
    returned: &mut HashSet<(String, String)>,
) {
    let (fate, message) = match answer {
        Ok(Confirmation::Ack(message)) => (Fate::Confirmed, message),
        Ok(Confirmation::Nack(message)) => (Fate::Refused, message),
        // The channel is in confirm mode, so this cannot come; if it does, nothing is known.
        Ok(Confirmation::NotRequested) => (Fate::Silent, None),
        Err(error) => (Fate::Broken(error), None),
    };
    fates[index] = fate;
    if let Some(message) = message {
        let id = message.delivery.properties.message_id().as_ref().map(ToString::to_string).unwrap_or_default();
        returned.insert((id, message.delivery.routing_key.to_string()));
    }
}

fn identity(message: &Outgoing) -> (String, String) {
    let id = message.properties.message_id().as_ref().map(ToString::to_string).unwrap_or_default();
    (id, message.routing_key.to_string())
}
