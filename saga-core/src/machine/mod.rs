//! Every decision of the runtime, as pure functions: a state and an event give a new state and commands.
//!
//! Nothing here awaits, reads a clock, draws a random number or does I/O. [`apply`] moves a saga; [`after_attempt`] decides
//! whether a failed attempt is retried; [`ClaimedRow`] says whether the saga still wants a command that was claimed;
//! [`event_of_answer`] says what follows from the reply of another service.
//!
//! The module is public only with the feature `unstable-machine`, which is for tests of the runtime itself: it may change in
//! any release.

mod advance;
mod after_attempt;
mod apply;
mod arms;
mod attempt;
mod cancel;
mod choice;
mod choreography;
mod claim;
mod compensate;
mod deadline;
mod decision;
mod definition_diff;
mod event;
mod exhausted;
mod failure;
mod for_each;
mod forward;
mod host_reply;
mod host_undo;
mod item_lookup;
mod items;
mod late;
mod lock;
mod lock_lost;
mod migrate;
mod operator;
mod pause;
mod remote;
mod report;
mod resolve;
mod restart;
mod settle;
mod shape;
mod signal;
mod state;
mod state_codec;
mod step_outcome;
mod step_state;
mod sub_saga;
mod timeline;
mod timer;
mod undo_order;

pub use self::after_attempt::after_attempt;
pub use self::apply::apply;
pub use self::attempt::{Attempt, Ending, Next, Resolving, attempts_max, crashed_attempts_max};
pub use self::choreography::{AtDeadline, at_deadline, failed_by_now};
pub use self::claim::ClaimedRow;
pub use self::deadline::set_deadline;
pub use self::decision::{Command, Decision, Record, Revision};
pub use self::definition_diff::differences;
pub use self::event::{Action, Event, Refused};
pub use self::failure::{Failure, FailureKind, Stuck};
pub use self::forward::start;
pub use self::host_reply::{AnsweredCommand, answer_again, answer_of, answered_command, event_of_answer, must_undo};
pub use self::host_undo::undo_before_command;
pub(crate) use self::items::ITEMS_MAX;
pub use self::items::Items;
pub(crate) use self::lock::held_locks;
pub use self::migrate::{Migrated, Route, migrate};
pub use self::remote::{Caller, Sent};
pub use self::shape::{ArmOf, Effect, Shape, Side, StepShape, UndoShape};
pub use self::state::{KeptReport, KeptResult, Pause, Phase, SagaState};
pub use self::step_state::{StepPhase, StepState};
pub use self::sub_saga::tombstone;
pub use self::timeline::{Became, Fact, Happened, Mark, Timeline, TimelineEntry, reported};
pub use self::timer::{Deadline, Timer};
