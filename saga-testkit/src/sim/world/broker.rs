//! The queues between the services.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use saga_core::store::MessageId;
use saga_core::transport::Message;
use tokio::sync::Notify;

/// The queues of a simulated broker, by the names of the services.
#[derive(Debug, Default)]
pub(crate) struct Broker {
    queues: Mutex<Queues>,
    pub(crate) filled: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(crate) waiting: BTreeMap<String, Vec<Waiting>>,
    /// Messages that were accepted, and how often.
    pub(crate) accepted: BTreeMap<MessageId, u32>,
    /// How many copies are on their way: late, waiting, or received and not settled.
    pub(crate) under_way: u64,
    /// Messages whose receiver said that it has them.
    pub(crate) settled: BTreeMap<(String, MessageId), (Duration, Message)>,
    /// Steps whose command was received: only a mutant looks at them.
    asked: BTreeSet<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) message: Message,
    pub(crate) redelivered: bool,
}

impl Broker {
    pub(crate) fn put(&self, waiting: Waiting) {
        self.lock().waiting.entry(waiting.message.topic.clone()).or_default().push(waiting);
        self.filled.notify_waiters();
    }

    /// Whether this message was accepted before.
    pub(crate) fn has(&self, message: MessageId) -> bool {
        self.lock().accepted.contains_key(&message)
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().under_way == 0
    }

    /// The messages that receivers said they have, each with the topic of the queue that it came from and the time when
    /// that was said first.
    pub(crate) fn settled(&self) -> Vec<(String, Duration, Message)> {
        let settled = &self.lock().settled;
        settled.iter().map(|((topic, _), (at, message))| (topic.clone(), *at, message.clone())).collect()
    }

    /// Remembers that the step of this command was asked for.
    pub(crate) fn note_asked(&self, command: &Message) {
        self.lock().asked.insert(step_of(command));
    }

    /// Whether the step of this undo was asked for.
    pub(crate) fn was_asked(&self, undo: &Message) -> bool {
        self.lock().asked.contains(&step_of(undo))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The step that a message is about, as one text.
fn step_of(message: &Message) -> String {
    let (headers, topic) = (&message.headers, &message.topic);
    format!("{topic}/{}/{:?}/{:?}", message.tenant, headers.saga_key, headers.step)
}
