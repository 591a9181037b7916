//! Decisions: the only place that calls the machine.

mod attempt;
mod choice;
mod deadline;
mod decider;
mod emitted_events;
mod expiry;
mod hosted;
mod kept_report;
pub(crate) mod late_success;
mod lock;
mod migration;
mod new_saga;
mod next_command;
mod records;
mod remote;
mod reply;
mod result;
mod signal;
mod unlocked;
mod wait;
mod work_row;

pub(crate) use self::choice::{arm_output, make_choice};
pub(crate) use self::deadline::{StartTiming, deadline_of, deadline_row, overdue};
pub(crate) use self::decider::RuntimePorts;
pub(crate) use self::decider::{Decider, finished_by};
pub(crate) use self::emitted_events::tell_of_success;
pub(crate) use self::hosted::{at_pivot_deadline, hosted_state, refusal_of, state_of_early_undo, tombstone, unwanted};
pub(crate) use self::kept_report::keep_report;
pub(crate) use self::lock::{lock_request, lock_result, step_lock_request, taken_lock_result, wanted_locks};
pub(crate) use self::migration::{MigrationCheck, check_input, prepare_move};
pub(crate) use self::new_saga::StartOptions;
pub(crate) use self::remote::note_row;
pub(crate) use self::reply::event_of_reply;
pub(crate) use self::result::made as made_result;
pub(crate) use self::unlocked::unlock_between_attempts;
