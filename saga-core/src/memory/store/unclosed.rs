//! The walk through hosted steps that no message has closed.

use std::ops::Bound;

use crate::memory::clock::Moment;
use crate::memory::tables::data::{Data, SagaData};
use crate::store::{SagaId, Timestamp, Unclosed, UnclosedFilter, UnclosedStep};

/// The next part of the walk.
pub(super) fn unclosed(data: &mut Data, filter: &UnclosedFilter, now: Timestamp) -> Unclosed {
    let Some(after) = data.maintenance.walk.next_part(filter.interval, now) else { return Unclosed::default() };
    let part = data.sagas.range((Bound::Excluded(after), Bound::Unbounded)).take(filter.limit);
    let part: Vec<(SagaId, &SagaData)> = part.map(|(id, saga)| (*id, saga)).collect();
    let last = part.last().map(|(id, _)| *id).filter(|_| part.len() == filter.limit);
    let until = now.minus(filter.interval);
    let is_meant = |saga: &&SagaData| {
        let row = &saga.row;
        let has_ended = row.ended_at.is_some_and(|at| at <= until);
        has_ended && saga.dated.is_none() && !row.is_tombstone() && filter.definitions.contains(&row.definition)
    };
    let steps = part.into_iter().map(|(_, saga)| saga).filter(is_meant).map(|saga| UnclosedStep {
        tenant: saga.row.tenant.clone(),
        key: saga.row.key.clone(),
        definition: saga.row.definition.clone(),
        state: saga.row.state.clone(),
        ended_ago: now.since(saga.row.ended_at.unwrap_or(now)),
    });
    let steps = steps.collect();
    data.maintenance.walk = data.maintenance.walk.after(last, now);
    Unclosed { steps, more: last.is_some() }
}
