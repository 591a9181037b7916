//! Limits of what this process holds and runs at a time, by definition and step.

mod acquire;
mod bulkheads;
mod call_duration;
mod capacity;
mod claim_plan;
mod concurrency_key;
mod fair_queue;
mod permits;
mod usage;

pub(crate) use self::bulkheads::Bulkheads;
pub(crate) use self::capacity::PoolSizes;
pub(crate) use self::claim_plan::{CLAIM_MAX, ClaimPlan};
pub(crate) use self::concurrency_key::{ConcurrencyKey, Pool};
pub(crate) use self::fair_queue::FairQueue;
pub(crate) use self::permits::{Admission, ConcurrencyPermit, QueueSlot};
