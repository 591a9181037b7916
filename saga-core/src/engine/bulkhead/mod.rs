//! Bulkheads: what keeps one slow step from taking all that a process has.
//!
//! A saga that is under way fills a *place* in memory, and a command that runs holds a *line*. Both are counted by
//! [`Pool`], so that calls never take what transactions need, by definition, so that one of them leaves some for the
//! others, and against the limits that steps and sagas set with `max_concurrent`.
//!
//! What finds no place stays free in the store: for another process, or until there is room here.

mod bulkheads;
mod claim_plan;
mod fair_lane;
mod pace;
mod permits;
mod seat;
mod usage;

pub(super) use self::bulkheads::{Bulkheads, Sizes};
pub(super) use self::claim_plan::{CLAIM_MAX, ClaimPlan};
pub(super) use self::fair_lane::FairLane;
pub(super) use self::permits::{Admission, ConcurrencyPermit, QueueSlot};
pub(super) use self::seat::{ConcurrencyKey, Pool};
