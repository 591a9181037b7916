//! The task that keeps messages from others while this process has them, and now and then looks whether the queue and its
//! subscriptions are there.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::batch::MESSAGES_MAX;
use crate::settler::{hide, is_void};
use crate::subscribed::Subscribed;
use saga_core::__private::log;

/// How long between two looks at the queue.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// The pause after a request that failed.
const PAUSE: Duration = Duration::from_secs(1);
/// How long between two looks at what is due: shorter than a third of the shortest time that a message is withheld for.
const DUE_EVERY: Duration = Duration::from_millis(500);

pub(crate) async fn run(subscribed: Arc<Subscribed>) {
    let ended = async {
        subscribed.ended().await;
    };
    tokio::select! {
        () = ended => {}
        () = keep(&subscribed) => {}
        () = look(&subscribed) => {}
    }
}

async fn keep(subscribed: &Subscribed) {
    loop {
        let next_due = subscribed.lock().held.next_due();
        let now = Instant::now();
        if next_due.is_none_or(|due| due > now) {
            // What arrives meanwhile is due later than this.
            tokio::time::sleep(DUE_EVERY).await;
            continue;
        }
        if !extend(subscribed, now).await {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Withholds what is due for longer; answers whether it could.
async fn extend(subscribed: &Subscribed, now: Instant) -> bool {
    let queue = &subscribed.needs.queue;
    let due = {
        let mut state = subscribed.lock();
        let due = state.held.due(now, MESSAGES_MAX);
        for tag in &due.lost {
            state.held.forget(*tag);
        }
        due
    };
    if !due.lost.is_empty() {
        log::warn!(queue, count = due.lost.len(), "messages held for 12 hours, they are delivered again");
        subscribed.room.notify_one();
    }
    if due.extended.is_empty() {
        return true;
    }
    let visibility = subscribed.topology.options.visibility.as_secs();
    let mut failures = match hide(subscribed, &due.extended, i32::try_from(visibility).unwrap_or(i32::MAX)).await {
        Ok(failures) => failures,
        Err(failure) => {
            let error = failure.describe(&format!("withhold messages of the queue {queue} for longer"));
            log::debug!(queue, error, "messages not withheld for longer");
            subscribed.lock().last_error = Some(error);
            return false;
        }
    };
    let (mut lost, mut is_done) = (0_u32, true);
    let mut state = subscribed.lock();
    for (tag, _) in due.extended {
        match failures.remove(&tag) {
            None => state.held.extended(tag, now),
            Some(failure) if is_void(&failure) => {
                state.held.forget(tag);
                lost += 1;
            }
            Some(_) => is_done = false,
        }
    }
    drop(state);
    if lost > 0 {
        log::debug!(queue, count = lost, "messages were no longer held, they are delivered again");
        subscribed.room.notify_one();
    }
    is_done
}

/// Makes again what was deleted, and counts the messages of the queue.
async fn look(subscribed: &Subscribed) {
    loop {
        let depth = subscribed.topology.depth(&subscribed.url()).await;
        let mut error = depth.as_ref().err().map(|failure| failure.describe("count the messages of the queue"));
        subscribed.lock().depth = depth.ok();
        tokio::time::sleep(LOOK_EVERY).await;
        match subscribed.topology.require(&subscribed.needs).await {
            Ok(url) => subscribed.lock().url = url,
            Err(other) => error = Some(other.to_string()),
        }
        if let Some(error) = error {
            subscribed.lock().last_error = Some(error);
        }
    }
}
