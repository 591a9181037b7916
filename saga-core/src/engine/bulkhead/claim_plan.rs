//! What one claim asks of the store.

use std::sync::Arc;

use super::concurrency_key::{ConcurrencyKey, ConcurrencyLimits, DefinitionLimits};
use crate::store::{ClaimShare, DefinitionId};

/// How many rows are claimed at a time.
pub(crate) const CLAIM_MAX: usize = 64;

/// What a claim asks the store for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClaimPlan {
    /// `None` if there is room for work of every definition and step.
    pub(crate) shares: Option<Vec<ClaimShare>>,
    /// Whether some work stays in the store because no slot is free for it.
    pub(crate) is_work_left: bool,
}

impl ClaimPlan {
    /// The plan for these definitions; `room` says how many more commands with a key may have a slot.
    pub(crate) fn new(
        known: &[DefinitionId],
        limits: &ConcurrencyLimits,
        is_fair: bool,
        room: impl Fn(ConcurrencyKey) -> usize,
    ) -> Self {
        let part = if is_fair { CLAIM_MAX.div_ceil(known.len().max(1)) } else { CLAIM_MAX };
        let mut plan = Self { shares: None, is_work_left: false };
        let mut shares = Vec::new();
        for definition in known {
            let Some(of) = limits.get(definition) else { continue };
            if of.claimable.iter().all(|claimable| room(claimable.key) >= CLAIM_MAX) {
                shares.push(ClaimShare { definition: definition.clone(), steps: None, limit: part });
            } else {
                plan.is_work_left = true;
                shares.extend(shares_of(definition, of, |key| room(key).min(part)));
            }
        }
        plan.shares = (is_fair || plan.is_work_left).then_some(shares);
        plan
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shares.as_ref().is_some_and(Vec::is_empty)
    }
}

/// The work of one definition for which there is room: by pool, and by step for steps that set a limit.
fn shares_of<'a>(
    definition: &'a DefinitionId,
    of: &'a DefinitionLimits,
    room: impl Fn(ConcurrencyKey) -> usize + 'a,
) -> impl Iterator<Item = ClaimShare> + 'a {
    of.claimable.iter().filter_map(move |claimable| {
        let limit = room(claimable.key);
        let share = || ClaimShare { definition: definition.clone(), steps: Some(Arc::clone(&claimable.steps)), limit };
        (limit > 0).then(share)
    })
}
