use std::time::Duration;

use crate::store::{Expiry, Status};

const DAY: Duration = Duration::from_hours(24);

/// How long sagas are kept after their end.
///
/// First a saga is kept in full. Then only a tombstone is kept: its key, the hash of its input, its outcome, its times and
/// what operators did with it. A repeated start with the key is still recognised. At last the tombstone is deleted; from
/// then on a start with the key starts a new saga. Sagas that run, are stuck or are paused are kept.
///
/// All times count from the end of the saga, by the clock of the store.
///
/// ```
/// use saga_core::memory::MemoryStore;
/// use saga_core::{Retention, Saga, StepError, saga_step};
///
/// #[saga_step(no_compensation)]
/// async fn ship(_order: u32) -> Result<(), StepError> {
///     Ok(())
/// }
///
/// let place_order: Saga<MemoryStore, u32> = Saga::named("place-order")
///     .input()
///     .retention(Retention::days(30).compensated_days(365).key_days(400))
///     .step::<ship>()
///     .build()?;
/// # assert_eq!(place_order.name(), "place-order");
/// # Ok::<(), saga_core::saga::SagaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    completed: Duration,
    compensated: Option<Duration>,
    key: Option<Duration>,
}

impl Retention {
    /// Keeps sagas in full for so many days, and then deletes them.
    pub const fn days(days: u32) -> Self {
        Self::of(DAY.saturating_mul(days))
    }

    /// Keeps sagas in full for this long, and then deletes them.
    pub const fn of(full: Duration) -> Self {
        Self { completed: full, compensated: None, key: None }
    }

    /// Keeps sagas that were compensated in full for so many days.
    #[must_use]
    pub const fn compensated_days(self, days: u32) -> Self {
        self.compensated(DAY.saturating_mul(days))
    }

    /// Keeps sagas that were compensated in full for this long.
    #[must_use]
    pub const fn compensated(self, full: Duration) -> Self {
        Self { compensated: Some(full), ..self }
    }

    /// Keeps tombstones until so many days after the end of the saga. Without it there are no tombstones.
    #[must_use]
    pub const fn key_days(self, days: u32) -> Self {
        self.key(DAY.saturating_mul(days))
    }

    /// Keeps tombstones until this long after the end of the saga.
    #[must_use]
    pub const fn key(self, key: Duration) -> Self {
        Self { key: Some(key), ..self }
    }

    /// How long sagas that end with this status are kept in full.
    pub fn full_for(&self, status: Status) -> Duration {
        match (status, self.compensated) {
            (Status::Compensated, Some(compensated)) => compensated,
            _ => self.completed,
        }
    }

    /// How long the keys of sagas that end with this status are known.
    pub fn key_for(&self, status: Status) -> Duration {
        self.key.unwrap_or_default().max(self.full_for(status))
    }

    pub(crate) fn expiry(&self, status: Status) -> Expiry {
        let (tombstone_in, delete_in) = (self.full_for(status), self.key_for(status));
        Expiry { tombstone_in, delete_in, hosts: Vec::new() }
    }

    /// The key time that was asked for, if it is shorter than a saga is kept in full.
    pub(crate) fn short_key(&self) -> Option<(Duration, Duration)> {
        let full = self.completed.max(self.compensated.unwrap_or_default());
        self.key.filter(|key| *key < full).map(|key| (key, full))
    }
}
