//! What one claim asks of the store.

use std::sync::Arc;

use super::concurrency_key::{ConcurrencyKey, Seats, SeatsOf};
use crate::store::{ClaimShare, DefinitionId};

/// How many rows are claimed at a time.
pub(crate) const CLAIM_MAX: usize = 64;

/// What a claim asks the store for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClaimPlan {
    /// Nothing where there is room for whatever comes.
    pub(crate) shares: Option<Vec<ClaimShare>>,
    /// Whether some work has no room, so that it stays in the store.
    pub(crate) is_short: bool,
}

impl ClaimPlan {
    /// The plan for these definitions, where `room` says how many more commands of a seat may have a place.
    pub(crate) fn new(
        known: &[DefinitionId],
        seats: &Seats,
        is_fair: bool,
        room: impl Fn(ConcurrencyKey) -> usize,
    ) -> Self {
        let part = if is_fair { CLAIM_MAX.div_ceil(known.len().max(1)) } else { CLAIM_MAX };
        let mut plan = Self { shares: None, is_short: false };
        let mut shares = Vec::new();
        for definition in known {
            let Some(of) = seats.get(definition) else { continue };
            if of.claimable.iter().all(|claimable| room(claimable.seat) >= CLAIM_MAX) {
                shares.push(ClaimShare { definition: definition.clone(), steps: None, limit: part });
            } else {
                plan.is_short = true;
                shares.extend(shares_of(definition, of, |seat| room(seat).min(part)));
            }
        }
        plan.shares = (is_fair || plan.is_short).then_some(shares);
        plan
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shares.as_ref().is_some_and(Vec::is_empty)
    }
}

/// The work of one definition for which there is room: of each pool, and of each step with a limit of its own.
fn shares_of<'a>(
    definition: &'a DefinitionId,
    of: &'a SeatsOf,
    room: impl Fn(ConcurrencyKey) -> usize + 'a,
) -> impl Iterator<Item = ClaimShare> + 'a {
    of.claimable.iter().filter_map(move |claimable| {
        let limit = room(claimable.seat);
        let share = || ClaimShare { definition: definition.clone(), steps: Some(Arc::clone(&claimable.steps)), limit };
        (limit > 0).then(share)
    })
}
