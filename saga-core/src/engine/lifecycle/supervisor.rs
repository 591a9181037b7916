//! Remembers which tasks panicked, for the health report.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Serialize, Serializer};

/// A task of the runtime that panicked: a bug of the runtime, the store or the transport. Panics of steps are failed attempts, and
/// are not listed. The work of the task is done again, at the latest when its lease ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Panicked {
    /// The name of the task: a long-running one that serves all sagas, or one for a single saga or message.
    pub lane: &'static str,
    /// How often it has panicked since the runtime started.
    pub count: u64,
    /// The text of the last panic.
    pub last: String,
    /// How long ago that was.
    #[serde(rename = "since_s", serialize_with = "as_seconds")]
    pub since: Duration,
    /// Whether it is down now. It is started again after at most two seconds.
    pub is_down: bool,
}

/// How a duration is written as JSON.
pub(crate) fn as_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// Remembers what panicked.
#[derive(Debug, Default)]
pub(crate) struct Supervisor {
    known: Mutex<BTreeMap<&'static str, Known>>,
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    count: u64,
    last: String,
    at: Duration,
    is_down: bool,
}

impl Supervisor {
    pub(crate) fn panicked(&self, lane: &'static str, now: Duration, panic: &str, is_down: bool) {
        let mut all = self.lock();
        let known = all.entry(lane).or_default();
        known.count += 1;
        (known.last, known.at, known.is_down) = (panic.to_owned(), now, is_down);
    }

    pub(crate) fn is_up(&self, lane: &'static str) {
        if let Some(known) = self.lock().get_mut(lane) {
            known.is_down = false;
        }
    }

    /// What panicked, by name.
    pub(crate) fn read(&self, now: Duration) -> Vec<Panicked> {
        let panicked = |(&lane, known): (&&'static str, &Known)| Panicked {
            lane,
            count: known.count,
            last: known.last.clone(),
            since: now.saturating_sub(known.at),
            is_down: known.is_down,
        };
        self.lock().iter().map(panicked).collect()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
