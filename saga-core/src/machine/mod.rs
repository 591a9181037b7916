//! Every decision of the runtime, as pure functions: a state and an event give a new state and commands.
//!
//! Nothing here awaits, reads a clock, draws a random number or does I/O. [`apply`] moves a saga; [`after_attempt`]
//! decides whether an attempt that ended badly is tried again; [`ClaimedRow`] whether a command that is claimed is
//! still wanted; [`event_of_answer`] what follows from the reply of another service.

mod answers;
mod attempt;
mod call_off;
mod children;
mod choose;
mod choreography;
mod claimed;
mod compensate;
mod deadline;
mod decision;
mod difference;
mod event;
mod items;
mod migrate;
mod migrate_arms;
mod operator;
mod pause;
mod remote;
mod report;
mod resolve;
mod shape;
mod signal;
mod state;
mod take_over;
mod timeline;
mod timer;
mod transition;

pub use self::answers::{AnsweredCommand, answer_again, answer_of, event_of_answer, is_to_be_taken_back, told, unseen};
pub use self::attempt::{Attempt, Ending, Next, RETRY_AGE_MAX, after_attempt};
pub use self::children::tombstone;
pub use self::choreography::{AtDeadline, at_deadline, failed_by_now};
pub use self::claimed::ClaimedRow;
pub use self::deadline::{Deadline, set_deadline};
pub use self::decision::{Command, Decision, Record, Revision};
pub use self::difference::differences;
pub use self::event::{Action, Event, Refused};
pub(crate) use self::items::ITEMS_MAX;
pub use self::items::Items;
pub use self::migrate::{Migrated, Route, migrate};
pub use self::pause::Pause;
pub use self::remote::{Caller, Sent};
pub use self::report::KeptReport;
pub use self::resolve::{Resolving, attempts_max};
pub use self::shape::{ArmOf, Effect, Shape, Side, StepShape, UndoShape};
pub use self::state::{Failure, FailureKind, Phase, SagaState, StepPhase, StepState, Stuck};
pub use self::timeline::{Became, Fact, Happened, Mark, Timeline, TimelineEntry, reported};
pub use self::timer::Timer;
pub use self::transition::{apply, start};
