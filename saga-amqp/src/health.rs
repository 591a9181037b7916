use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::ConnectionStatus;
use tokio::time::Instant;

/// The state of a transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmqpHealth {
    /// The connection that publishes.
    pub publisher: ConnectionHealth,
    /// The active subscriptions, in the order in which they were made.
    pub subscriptions: Vec<SubscriptionHealth>,
}

impl AmqpHealth {
    /// Whether everything is connected and nothing is blocked.
    pub fn is_healthy(&self) -> bool {
        let mut all = self.subscriptions.iter().map(|subscription| &subscription.connection);
        self.publisher.state == ConnectionState::Connected && all.all(|one| one.state == ConnectionState::Connected)
    }
}

/// The state of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionHealth {
    /// The subscription's name.
    pub name: String,
    /// Its connection.
    pub connection: ConnectionHealth,
}

/// The state of a connection, and its last error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionHealth {
    /// The state.
    pub state: ConnectionState,
    /// The last error, also after the connection was restored.
    pub last_error: Option<String>,
}

/// The state of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// The connection works.
    Connected,
    /// The broker blocks publishing, because it is short of memory or disk.
    Blocked {
        /// The reason that the broker gives.
        reason: String,
        /// How long it has been blocked.
        since: Duration,
    },
    /// The connection is lost, and the transport reconnects.
    Reconnecting {
        /// How long the connection has been lost.
        since: Duration,
        /// The number of failed attempts.
        attempts: u32,
    },
}

/// The state of one connection, shared by the task that keeps it and the callers of `health`.
#[derive(Debug, Clone)]
pub(crate) struct HealthCell(Arc<Mutex<Known>>);

#[derive(Debug)]
struct Known {
    status: Option<ConnectionStatus>,
    blocked: Option<(String, Instant)>,
    lost_at: Option<Instant>,
    attempts: u32,
    last_error: Option<String>,
}

impl HealthCell {
    pub(crate) fn new() -> Self {
        let known = Known { status: None, blocked: None, lost_at: None, attempts: 0, last_error: None };
        Self(Arc::new(Mutex::new(known)))
    }

    pub(crate) fn connected(&self, status: ConnectionStatus) {
        let mut known = self.lock();
        *known = Known {
            status: Some(status),
            blocked: None,
            lost_at: None,
            attempts: 0,
            last_error: known.last_error.take(),
        };
    }

    pub(crate) fn blocked(&self, reason: Option<String>) {
        self.lock().blocked = reason.map(|reason| (reason, Instant::now()));
    }

    pub(crate) fn lost(&self, error: &str) {
        let mut known = self.lock();
        known.status = None;
        known.blocked = None;
        known.lost_at.get_or_insert_with(Instant::now);
        known.last_error = Some(error.to_owned());
    }

    pub(crate) fn failed_again(&self, error: &str) {
        self.lost(error);
        self.lock().attempts += 1;
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        self.lock().last_error.clone()
    }

    /// How it stands. A connection that died unnoticed is told from its own status.
    pub(crate) fn read(&self) -> ConnectionHealth {
        let mut known = self.lock();
        let is_up = known.status.as_ref().is_some_and(ConnectionStatus::connected);
        let state = match &known.blocked {
            Some((reason, since)) if is_up => {
                ConnectionState::Blocked { reason: reason.clone(), since: since.elapsed() }
            }
            _ if is_up => ConnectionState::Connected,
            _ => {
                let attempts = known.attempts;
                let since = known.lost_at.get_or_insert_with(Instant::now).elapsed();
                ConnectionState::Reconnecting { since, attempts }
            }
        };
        ConnectionHealth { state, last_error: known.last_error.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
