//! Every decision of the runtime, as pure functions: a state and an event give a new state and commands.
//!
//! Nothing here awaits, reads a clock, draws a random number or does I/O. [`apply`] moves a saga; [`after_attempt`] decides
//! whether a failed attempt is retried; [`ClaimedRow`] says whether the saga still wants a command that was claimed;
//! [`event_of_answer`] says what follows from the reply of another service.
//!
//! The module is public only with the feature `unstable-machine`, which is for tests of the runtime itself: it may change in
//! any release.

mod advance;
mod apply;
mod arms;
mod attempt;
mod choice;
mod claim;
mod compensate;
mod deadline;
mod decision;
mod event;
mod for_each;
mod forward;
mod hosting;
mod late;
mod lock;
mod migrate;
mod operating;
mod settle;
mod signal;
mod state;
mod step_outcome;
mod sub_saga;
mod undo_order;

pub use self::apply::apply;
pub use self::attempt::after_attempt::after_attempt;
pub use self::attempt::attempt::{Attempt, Ending, Next, Resolving, attempts_max, crashed_attempts_max};
pub use self::attempt::backoff::{backoff, backoff_max};
pub(crate) use self::attempt::resolve::settles_next;
pub use self::claim::ClaimedRow;
pub use self::deadline::set_deadline;
pub use self::decision::{Command, Decision, Record, Revision};
pub use self::event::{Action, Event, Refused};
pub use self::forward::start;
pub use self::hosting::choreography::{AtDeadline, at_deadline, failed_by_now};
pub use self::hosting::host_reply::{
    AnsweredCommand, answer_again, answer_of, answered_command, event_of_answer, must_undo,
};
pub use self::hosting::host_undo::undo_before_command;
pub use self::hosting::timeline::{Became, Fact, Happened, Mark, Timeline, TimelineEntry, reported};
pub(crate) use self::lock::held_locks;
pub use self::migrate::{Migrated, Route, migrate};
pub use self::operating::definition_diff::differences;
pub use self::state::failure::{Failure, FailureKind, Stuck};
pub(crate) use self::state::items::ITEMS_MAX;
pub use self::state::items::Items;
pub use self::state::remote::{Caller, Sent};
pub use self::state::shape::{ArmOf, Effect, Shape, Side, StepShape, UndoShape};
pub use self::state::state::{KeptReport, KeptResult, Pause, Phase, SagaState};
pub use self::state::step_state::{StepPhase, StepState};
pub use self::state::timer::{Deadline, Timer};
pub use self::sub_saga::tombstone;
