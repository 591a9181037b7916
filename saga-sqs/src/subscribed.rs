//! One receiver of a subscription: the messages that it has, and what its tasks tell each other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saga_core::transport::{TransportError, TransportErrorKind};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::health::SubscriptionHealth;
use crate::held::{HeldMessages, Received};
use crate::topology::{Needs, Topology};

/// One receiver of a subscription, shared by its tasks.
pub(crate) struct Subscribed {
    /// The subscription's name.
    pub(crate) name: String,
    pub(crate) needs: Needs,
    pub(crate) topology: Arc<Topology>,
    state: Mutex<State>,
    /// Messages arrived, or receiving failed for good.
    pub(crate) news: Notify,
    /// There is room for more messages, or the receiver is gone.
    pub(crate) room: Notify,
    /// There is something to tell SQS.
    pub(crate) settled: Notify,
    /// Whether all tasks but the one that waits for the next due time have ended.
    ended: watch::Sender<bool>,
}

/// What changes.
pub(crate) struct State {
    pub(crate) held: HeldMessages,
    /// The address of the queue.
    pub(crate) url: String,
    /// Whether no more messages will arrive.
    pub(crate) has_stopped: bool,
    pub(crate) is_receiving: bool,
    pub(crate) depth: Option<u64>,
    pub(crate) last_error: Option<String>,
    /// Why receiving failed for good.
    pub(crate) failed: Option<(TransportErrorKind, String)>,
}

impl Subscribed {
    pub(crate) fn new(name: String, needs: Needs, topology: Arc<Topology>, url: String, held: HeldMessages) -> Self {
        let state =
            State { held, url, has_stopped: false, is_receiving: true, depth: None, last_error: None, failed: None };
        Self {
            name,
            needs,
            topology,
            state: Mutex::new(state),
            news: Notify::new(),
            room: Notify::new(),
            settled: Notify::new(),
            ended: watch::Sender::new(false),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn url(&self) -> String {
        self.lock().url.clone()
    }

    /// These messages were handed out, not before this time.
    pub(crate) fn arrived(&self, received: Vec<Received>, handed_out_at: Instant) {
        let mut state = self.lock();
        state.is_receiving = true;
        state.held.add(received, handed_out_at);
        drop(state);
        self.news.notify_waiters();
    }

    /// The receiver is gone, or is to get no more.
    pub(crate) fn close(&self) {
        self.lock().held.close();
        self.news.notify_waiters();
        self.room.notify_one();
        self.settled.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().held.is_closed()
    }

    /// No more messages will arrive.
    pub(crate) fn stopped(&self) {
        self.lock().has_stopped = true;
        self.settled.notify_one();
    }

    pub(crate) fn fail(&self, error: &TransportError) {
        let mut state = self.lock();
        state.failed = Some((error.kind(), error.to_string()));
        state.last_error = Some(error.to_string());
        state.is_receiving = false;
        drop(state);
        self.news.notify_waiters();
    }

    /// SQS knows of all that was settled, as far as it can be told.
    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
    }

    /// Waits until SQS knows of all that was settled.
    pub(crate) async fn ended(&self) {
        let mut ended = self.ended.subscribe();
        // The sender lives as long as this value.
        _ = ended.wait_for(|ended| *ended).await;
    }

    pub(crate) fn health(&self) -> SubscriptionHealth {
        let state = self.lock();
        SubscriptionHealth {
            name: self.name.clone(),
            is_receiving: state.is_receiving,
            unsettled: state.held.unsettled(),
            depth: state.depth,
            last_error: state.last_error.clone(),
        }
    }
}
