//! Plain values of the engine: a saga as this process holds it, a leased command, and what a commit leaves to do.

mod attempt_details;
mod attempt_result;
mod first_call;
mod held_lease;
mod inline_request;
mod inline_start;
mod inputs;
mod mapped_inputs;
mod next_work;
mod pending_commit;
mod pending_starts;
mod saga_instance;
mod send_via;
mod taken_work;
mod timer;
mod waiting_cache;
mod work_item;

pub(crate) use self::attempt_details::AttemptDetails;
pub(crate) use self::attempt_result::AttemptResult;
pub(crate) use self::first_call::{first_call, takes_semantic_lock};
pub(crate) use self::held_lease::HeldLease;
pub(crate) use self::inline_request::{InlineDecision, InlineRequest, NotInlined};
pub(crate) use self::inline_start::InlineStart;
pub(crate) use self::inputs::checksum;
pub(crate) use self::next_work::NextSlot;
pub(crate) use self::next_work::NextWork;
pub(crate) use self::pending_commit::PendingCommit;
pub(crate) use self::pending_starts::PendingStarts;
pub(crate) use self::saga_instance::{SagaInstance, in_flight};
pub(crate) use self::send_via::SendVia;
pub(crate) use self::taken_work::TakenWork;
pub(crate) use self::timer::idle_for;
pub(crate) use self::waiting_cache::WaitingCache;
pub(crate) use self::work_item::{WorkItem, lock_of, refs};
