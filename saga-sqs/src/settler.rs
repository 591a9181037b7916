//! The task that tells SQS what was settled: accepted messages are deleted, rejected ones handed out again.
//!
//! It takes all that was settled meanwhile into its next request, so that under load ten messages share one.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_sqs::types::{ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry};
use saga_core::transport::Settlement;

use crate::backoff::Backoff;
use crate::batch::MESSAGES_MAX;
use crate::error::{Cause, Failure};
use crate::subscribed::Subscribed;
use saga_core::__private::log;

/// How often a request is tried when the receiver is gone. What stays comes again after a while.
const LAST_ATTEMPTS_MAX: u32 = 3;

pub(crate) async fn run(subscribed: Arc<Subscribed>) {
    let _ended = Ended(&subscribed);
    let mut backoff = Backoff::default();
    loop {
        let mut is_idle = true;
        for settlement in [Settlement::Accept, Settlement::Reject] {
            let settled = subscribed.lock().held.settled(settlement, MESSAGES_MAX);
            if settled.is_empty() {
                continue;
            }
            is_idle = false;
            match tell(&subscribed, settlement, &settled).await {
                Ok(()) => backoff.reset(),
                Err(failure) => {
                    note(&subscribed, &failure, &backoff);
                    let pause = backoff.next();
                    if subscribed.lock().held.is_closed() && backoff.attempts() >= LAST_ATTEMPTS_MAX {
                        return;
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
        subscribed.room.notify_one();
        if is_idle {
            let is_last = {
                let state = subscribed.lock();
                state.has_stopped && state.held.is_closed() && state.held.is_empty()
            };
            if is_last {
                return;
            }
            subscribed.settled.notified().await;
        }
    }
}

/// Tells that nothing more is settled, also when the task panics.
struct Ended<'a>(&'a Subscribed);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// One request. A message whose handle is void is settled without an effect: it comes again.
async fn tell(subscribed: &Subscribed, settlement: Settlement, settled: &[(u64, String)]) -> Result<(), Failure> {
    let mut failures = match settlement {
        Settlement::Accept => delete(subscribed, settled).await?,
        Settlement::Reject => hide(subscribed, settled, 0).await?,
    };
    let mut last = None;
    let mut state = subscribed.lock();
    for (tag, _) in settled {
        match failures.remove(tag) {
            Some(failure) if is_void(&failure) => {
                log::debug!(queue = subscribed.needs.queue, "message was no longer held, it is delivered again");
                state.held.forget(*tag);
            }
            Some(failure) => last = Some(failure),
            None => state.held.forget(*tag),
        }
    }
    last.map_or(Ok(()), Err)
}

/// Whether a message is not this receiver's any more, or its queue is gone.
pub(crate) fn is_void(failure: &Failure) -> bool {
    matches!(failure.cause, Cause::VoidHandle | Cause::Invalid | Cause::NotFound)
}

/// The messages of a request that it failed for.
type Failures = BTreeMap<u64, Failure>;

async fn delete(subscribed: &Subscribed, settled: &[(u64, String)]) -> Result<Failures, Failure> {
    let mut request = subscribed.topology.clients.sqs.delete_message_batch().queue_url(subscribed.url());
    for (tag, handle) in settled {
        let entry = DeleteMessageBatchRequestEntry::builder().id(tag.to_string()).receipt_handle(handle).build();
        request = request.entries(entry.map_err(|error| Failure::said("InvalidParameter", Some(&error.to_string())))?);
    }
    match request.send().await {
        Ok(answer) => Ok(failures(answer.failed)),
        Err(error) => all_void(settled, Failure::of(&error)),
    }
}

/// Withholds messages from others for so many seconds from now.
pub(crate) async fn hide(
    subscribed: &Subscribed,
    messages: &[(u64, String)],
    seconds: i32,
) -> Result<Failures, Failure> {
    let mut request = subscribed.topology.clients.sqs.change_message_visibility_batch().queue_url(subscribed.url());
    for (tag, handle) in messages {
        let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(tag.to_string()).receipt_handle(handle);
        let entry = entry.visibility_timeout(seconds).build();
        request = request.entries(entry.map_err(|error| Failure::said("InvalidParameter", Some(&error.to_string())))?);
    }
    match request.send().await {
        Ok(answer) => Ok(failures(answer.failed)),
        Err(error) => all_void(messages, Failure::of(&error)),
    }
}

fn failures(failed: Vec<aws_sdk_sqs::types::BatchResultErrorEntry>) -> Failures {
    let failure = |entry: aws_sdk_sqs::types::BatchResultErrorEntry| {
        Some((entry.id.parse().ok()?, Failure::said(&entry.code, entry.message.as_deref())))
    };
    failed.into_iter().filter_map(failure).collect()
}

/// Where the queue is gone, so are its messages.
fn all_void(messages: &[(u64, String)], failure: Failure) -> Result<Failures, Failure> {
    if failure.cause == Cause::NotFound {
        return Ok(messages.iter().map(|(tag, _)| (*tag, failure.clone())).collect());
    }
    Err(failure)
}

fn note(subscribed: &Subscribed, failure: &Failure, backoff: &Backoff) {
    let queue = &subscribed.needs.queue;
    let error = failure.describe(&format!("settle messages of the queue {queue}"));
    if backoff.attempts() == 0 {
        log::warn!(queue, error, "messages not settled, they may be delivered again");
    }
    subscribed.lock().last_error = Some(error);
}
