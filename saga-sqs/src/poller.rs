//! The task that asks SQS for messages, for as long as there is room.
//!
//! A request is never given up: SQS may answer one that was given up, and withholds those messages from others.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as System};
use saga_core::transport::TransportErrorKind;
use tokio::time::Instant;
use uuid::Uuid;

use crate::backoff::Backoff;
use crate::batch::MESSAGES_MAX;
use crate::clients::while_waiting;
use crate::error::{Cause, Failure};
use crate::held::Received;
use crate::subscribed::Subscribed;
use saga_core::__private::log;

/// The pause after a request that found nothing, and did not wait for anything.
const PAUSE: Duration = Duration::from_millis(200);

/// Requests that failed since one succeeded.
#[derive(Default)]
struct Outage {
    backoff: Backoff,
    /// Whether the log says that the queue was gone.
    was_gone: bool,
}

pub(crate) async fn run(subscribed: Arc<Subscribed>) {
    let mut outage = Outage::default();
    loop {
        let room = {
            let state = subscribed.lock();
            if state.held.is_closed() || state.failed.is_some() {
                break;
            }
            state.held.room()
        };
        if room == 0 {
            subscribed.room.notified().await;
            continue;
        }
        let asked_at = Instant::now();
        match receive(&subscribed, room.min(MESSAGES_MAX)).await {
            Ok(received) => {
                if outage.backoff.attempts() > 0 {
                    log::info!(queue = subscribed.needs.queue, "receiving works again");
                    outage = Outage::default();
                }
                let is_empty = received.is_empty();
                subscribed.arrived(received, handed_out_at(asked_at, &subscribed));
                if is_empty && asked_at.elapsed() < PAUSE {
                    // It did not wait, and each request has its price.
                    tokio::time::sleep(PAUSE).await;
                }
            }
            Err(failure) => failed(&subscribed, &failure, &mut outage).await,
        }
    }
    subscribed.stopped();
}

/// Since when messages of an answer may be withheld from others, at most. The request waits for messages, their answer only for the
/// network: for a sixth of the visibility time, so that what is slower is withheld for longer in time all the same.
fn handed_out_at(asked_at: Instant, subscribed: &Subscribed) -> Instant {
    let options = &subscribed.topology.options;
    let slowest = options.request_timeout.min(options.visibility / 6);
    Instant::now().checked_sub(slowest).map_or(asked_at, |at| at.max(asked_at))
}

async fn receive(subscribed: &Subscribed, count: usize) -> Result<Vec<Received>, Failure> {
    let options = &subscribed.topology.options;
    let whole = |seconds: u64| i32::try_from(seconds).unwrap_or(i32::MAX);
    let asked = subscribed.topology.clients.sqs.receive_message();
    let answer = asked
        .queue_url(subscribed.url())
        .max_number_of_messages(i32::try_from(count).unwrap_or(1))
        .wait_time_seconds(whole(options.wait_time.as_secs()))
        .visibility_timeout(whole(options.visibility.as_secs()))
        .message_attribute_names("All")
        .message_system_attribute_names(System::ApproximateReceiveCount)
        .message_system_attribute_names(System::DeadLetterQueueSourceArn)
        .receive_request_attempt_id(Uuid::new_v4().to_string())
        .customize()
        .config_override(while_waiting(options))
        .send()
        .await;
    let messages = answer.map_err(|error| Failure::of(&error))?.messages.unwrap_or_default();
    Ok(messages.into_iter().map(received).collect())
}

fn received(message: Message) -> Received {
    let system = message.attributes.unwrap_or_default();
    let texts = message.message_attributes.unwrap_or_default();
    let source = system.get(&System::DeadLetterQueueSourceArn);
    Received {
        handle: message.receipt_handle.unwrap_or_default(),
        attributes: texts.into_iter().filter_map(|(name, value)| Some((name, value.string_value?))).collect(),
        body: message.body.unwrap_or_default(),
        receives: system.get(&System::ApproximateReceiveCount).and_then(|count| count.parse().ok()).unwrap_or(1),
        died_in: source.and_then(|arn| arn.rsplit(':').next()).map(str::to_owned),
    }
}

/// Waits before the next request; a queue that was deleted is made again. It waits for that one too: a queue that is new, or is being
/// deleted, is found before and after it can be used.
async fn failed(subscribed: &Subscribed, failure: &Failure, outage: &mut Outage) {
    let queue = &subscribed.needs.queue;
    let mut error = failure.error("receive", &format!("receive from the queue {queue}"));
    let mut is_there_again = false;
    if failure.cause == Cause::NotFound {
        match subscribed.topology.require(&subscribed.needs).await {
            Ok(url) => {
                is_there_again = true;
                subscribed.lock().url = url;
            }
            Err(other) => error = other,
        }
    }
    if is_there_again && !outage.was_gone {
        log::warn!(queue, "queue was gone, made again");
        outage.was_gone = true;
    } else if outage.backoff.attempts() == 0 {
        log::warn!(queue, %error, "receiving does not work");
    }
    {
        let mut state = subscribed.lock();
        state.is_receiving = false;
        state.last_error = Some(error.to_string());
    }
    if error.kind() == TransportErrorKind::Refused {
        subscribed.fail(&error);
        return;
    }
    let closed = async {
        // What is settled meanwhile makes room, and must not shorten the pause.
        while !subscribed.is_closed() {
            subscribed.room.notified().await;
        }
    };
    tokio::select! {
        () = tokio::time::sleep(outage.backoff.next()) => {}
        () = closed => {}
    }
}
