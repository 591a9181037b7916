//! The health of one component: logs once when it fails, and once when it works again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Notify;

use crate::engine::lifecycle::{Panicked, as_seconds};
use crate::log;

/// A failure within this time after an outage belongs to the same outage: calls that waited for a connection fail late.
const SAME_OUTAGE_WITHIN: Duration = Duration::from_mins(1);

/// Whether the store or the transport works.
///
/// In JSON, `state` is `healthy` or `failing`, and `since_s` is in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ComponentHealth {
    /// No call fails.
    Healthy,
    /// Calls fail.
    Failing {
        /// Since how long.
        #[serde(rename = "since_s", serialize_with = "as_seconds")]
        since: Duration,
        /// How many calls have failed since.
        failures: u64,
        /// The error of the last one.
        last_error: String,
    },
}

/// Whether the store and the transport work, as the calls of this runtime find it.
///
/// Later versions only add fields to its JSON:
///
/// ```
/// use std::time::Duration;
///
/// use saga_core::engine::{ComponentHealth, Health};
///
/// let last_error = "the connection was refused".to_owned();
/// let transport = ComponentHealth::Failing { since: Duration::from_millis(2_500), failures: 3, last_error };
/// let health = Health { store: ComponentHealth::Healthy, store_recoveries: 2, transport, panicked: Vec::new() };
/// assert_eq!(
///     serde_json::to_value(&health)?,
///     serde_json::json!({
///         "store": { "state": "healthy" },
///         "store_recoveries": 2,
///         "transport": {
///             "state": "failing", "since_s": 2.5, "failures": 3, "last_error": "the connection was refused"
///         },
///         "panicked": [],
///     })
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    /// The store.
    pub store: ComponentHealth,
    /// How often the store failed and worked again since the runtime began. A program that compares two readings also sees
    /// an outage that was over when it looked.
    pub store_recoveries: u64,
    /// The transport.
    pub transport: ComponentHealth,
    /// What panicked since the runtime began, and was started again.
    pub panicked: Vec<Panicked>,
}

impl Health {
    /// Whether both work, and no long-running task is down.
    pub fn is_healthy(&self) -> bool {
        let is_down = self.panicked.iter().any(|panicked| panicked.is_down);
        self.store == ComponentHealth::Healthy && self.transport == ComponentHealth::Healthy && !is_down
    }
}

/// Tracks the failing calls of one component.
#[derive(Debug)]
pub(crate) struct HealthTracker {
    component: &'static str,
    pub(super) is_failing: AtomicBool,
    over: Notify,
    /// How often it recovered.
    recoveries: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    failing: BTreeMap<Call, Failing>,
    /// When an outage, or the end of one, was last seen.
    seen_at: Option<Duration>,
}

/// A call of a component.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    pub(crate) operation: &'static str,
    /// Set where it is about what a service receives: the broker may have the queue of one service, and not that of another.
    pub(crate) service: Option<String>,
}

#[derive(Debug)]
struct Failing {
    /// Whether no other call can work either.
    is_outage: bool,
    since: Duration,
    failures: u64,
    last_error: String,
}

impl HealthTracker {
    pub(crate) fn new(component: &'static str) -> Self {
        Self {
            component,
            is_failing: AtomicBool::new(false),
            over: Notify::new(),
            recoveries: AtomicU64::new(0),
            known: Mutex::default(),
        }
    }

    pub(crate) fn failed(&self, now: Duration, call: Call, is_outage: bool, error: &dyn fmt::Display) {
        let (component, mut known) = (self.component, self.lock());
        let (operation, service) = (call.operation, call.service.as_deref());
        let is_known = known.failing.get(&call).is_some_and(|failing| failing.is_outage == is_outage)
            || (is_outage && known.failing.values().any(|failing| failing.is_outage));
        let is_late =
            is_outage && known.seen_at.is_some_and(|seen_at| now < seen_at.saturating_add(SAME_OUTAGE_WITHIN));
        if is_known || is_late {
            log::debug!(component, operation, service, %error, "component still failing");
        } else {
            log::warn!(component, operation, service, %error, "component failing");
        }
        if is_outage {
            known.seen_at = Some(now);
        }
        let new = Failing { is_outage, since: now, failures: 0, last_error: String::new() };
        let failing = known.failing.entry(call).or_insert(new);
        failing.is_outage = is_outage;
        failing.failures += 1;
        failing.last_error = error.to_string();
        self.is_failing.store(true, Ordering::Release);
    }

    /// A call worked. That also ends the failures of an outage. The failure of a service's subscription ends when this subscription
    /// works.
    pub(crate) fn works(&self, now: Duration, call: &Call) {
        let (component, mut known) = (self.component, self.lock());
        let before = known.failing.len();
        let since = known.failing.values().map(|failing| failing.since).min();
        known.failing.retain(|failed, failing| failed != call && (failed.service.is_some() || !failing.is_outage));
        if known.failing.is_empty() && before > 0 {
            known.seen_at = known.seen_at.map(|_| now);
            self.is_failing.store(false, Ordering::Release);
            let after = now.saturating_sub(since.unwrap_or(now));
            log::info!(component, ?after, "component recovered");
            self.recoveries.fetch_add(1, Ordering::AcqRel);
            self.over.notify_waiters();
        }
    }

    /// How often it recovered.
    pub(crate) fn recoveries(&self) -> u64 {
        self.recoveries.load(Ordering::Acquire)
    }

    /// Waits until it has recovered more than `seen` times.
    pub(crate) async fn recovers(&self, seen: u64) {
        // Registered before the check, so that a recovery in between is not missed.
        let over = self.over.notified();
        if self.recoveries() == seen {
            over.await;
        }
    }

    pub(crate) fn health(&self, now: Duration) -> ComponentHealth {
        let known = self.lock();
        let Some(longest) = known.failing.values().min_by_key(|failing| failing.since) else {
            return ComponentHealth::Healthy;
        };
        ComponentHealth::Failing {
            since: now.saturating_sub(longest.since),
            failures: known.failing.values().map(|failing| failing.failures).sum(),
            last_error: longest.last_error.clone(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_ready(future: impl Future<Output = ()>) -> bool {
        pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// A result that could not be recorded waited two seconds, and was called again by then, when the store recovered
    /// between the failure and the wait.
    #[test]
    fn a_recovery_before_the_wait_is_not_missed() {
        let tracker = HealthTracker::new("store");
        let before = tracker.recoveries();
        let record = Call { operation: "record", service: None };
        tracker.failed(Duration::ZERO, record.clone(), true, &"it is away");
        assert!(!is_ready(tracker.recovers(before)), "it still fails");
        tracker.works(Duration::ZERO, &record);
        assert!(is_ready(tracker.recovers(before)));
        assert!(!is_ready(tracker.recovers(tracker.recoveries())), "there was no further tracker");
    }
}
