//! Every decision of the runtime, as pure functions: a state and an event give a new state and commands.
//!
//! Nothing here awaits, reads a clock, draws a random number or does I/O. [`apply`] moves a saga; [`after_attempt`]
//! decides whether an attempt that ended badly is tried again.

mod attempt;
mod compensate;
mod operator;
mod remote;
mod shape;
mod state;
mod transition;

pub use self::attempt::{Attempt, Ending, Next, RETRY_AGE_MAX, after_attempt};
pub use self::remote::{Caller, Sent};
pub use self::shape::{Effect, Shape, Side, StepShape, UndoShape};
pub use self::state::{Failure, FailureKind, Phase, SagaState, StepPhase, StepState, Stuck};
pub use self::transition::{Action, Command, Decision, Event, Record, Refused, Revision, apply, start};
