//! An independent judge of what a run of sagas did.
//!
//! It knows nothing of the engine: not its types, not its tables, not its decisions. It reads a [`Ledger`] that the
//! *outside* wrote (the service that was called, the business data, the clients, the receiver of the messages), adds what the
//! engine says in the end as one witness more, and holds all of it against the guarantees G1 to G13.
//!
//! It must never be made to agree with the engine by reading the engine's code. Its rules are the sentences of the
//! guarantees, and its own test damages sound ledgers and demands that each damage is found.

mod book;
mod calls;
mod choices;
mod claims;
mod effects;
mod finals;
mod isolation;
mod judge;
mod ledger;
mod liveness;
mod locks;
mod messages;
mod pace;
mod pauses;
mod plan;
mod progress;
mod restarts;
mod retention;
mod services;
mod signals;
mod starts;
mod time;
mod undo;
mod violation;

pub use self::finals::{ChosenSeen, Final, RecordSeen, Recorded, Rest, Standing};
pub use self::judge::check;
pub use self::ledger::{Act, Age, Answer, Entry, Ledger, Left, Pace, Receipt, Sent, What};
pub(crate) use self::plan::is_behind;
pub use self::plan::{ArmPlan, Kind, Nap, Op, SagaPlan, SagaTime, StepPlan, UndoPlan, Variant};
pub use self::violation::{Guarantee, Violation};
