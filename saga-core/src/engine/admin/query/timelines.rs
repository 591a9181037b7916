//! Timelines: the joined status of choreographed sagas.

use super::query::SagaQuery;
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::message::{TIMELINES, timeline_key};
use crate::key::Key;
use crate::machine::{Timeline, TimelineEntry};
use crate::store::{SagaFilter, SagaId, SagaRow, Status, Store, Timestamp};

/// The joined status of a choreographed saga, in a service that [follows](crate::choreography) it: the steps that its
/// services reported, and the events that marked it.
///
/// It is a view: a step that has not been reported yet is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimelineStatus {
    /// The row that keeps it; a list continues after it.
    pub id: SagaId,
    /// The saga's key.
    pub key: Key,
    /// The status of the saga: ended if an event that ends it was seen; stuck if a step needs an operator; compensating
    /// if a step failed, or was undone or barred.
    pub status: Status,
    /// When the event that ended it was committed.
    pub ended_at: Option<Timestamp>,
    /// What happened, in the order of the commits, by the clocks of the databases, which may differ.
    pub entries: Vec<TimelineEntry>,
    /// Whether more happened than is kept.
    pub is_cut: bool,
}

impl TimelineStatus {
    fn of(row: &SagaRow) -> Result<Self, RuntimeError> {
        let timeline = Timeline::decode(&row.state)
            .map_err(|problem| RuntimeError::Unreadable { key: row.key.to_string(), problem })?;
        Ok(Self {
            id: row.id,
            key: row.key.asked_for(),
            status: timeline.status(),
            ended_at: timeline.ended().map(|(_, at)| at),
            entries: timeline.entries(),
            is_cut: timeline.is_cut(),
        })
    }
}

impl<S: Store> SagaQuery<S> {
    /// The timeline of the choreographed saga with this key; `None` if no service of this store has heard of it.
    ///
    /// # Errors
    /// When the key is not a legal one, what is stored cannot be read, or the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn timeline(&self, key: impl AsRef<str>) -> Result<Option<TimelineStatus>, RuntimeError> {
        outside_step()?;
        let key = timeline_key(&Key::from_stored(key.as_ref())?);
        let row = self.store.saga(&self.tenant, &key).await?;
        row.as_ref().map(TimelineStatus::of).transpose()
    }

    /// Timelines, in the order in which this store heard of their sagas: at most `limit` of them after the row `after`.
    ///
    /// # Errors
    /// When what is stored cannot be read, or the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn timelines(&self, after: Option<SagaId>, limit: usize) -> Result<Vec<TimelineStatus>, RuntimeError> {
        outside_step()?;
        let definition = Some(TIMELINES.name.to_string());
        let filter = SagaFilter { tenant: self.tenant.clone(), definition, after, limit, ..SagaFilter::default() };
        self.store.list(&filter).await?.iter().map(TimelineStatus::of).collect()
    }
}
