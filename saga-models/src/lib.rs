//! Models of the protocol between the coordinator of a saga and the services that host its steps, for the exhaustive
//! checker [`stateright`].
//!
//! Each decision is made by the machine of the runtime itself, [`saga_core::machine`]: what follows from an event, from an
//! attempt, from a claimed row, from a reply. What surrounds it is modelled: databases whose commits happen or do not,
//! processes that crash or are paused past their lease, a broker, the outbox, the inbox, and the world outside.
//!
//! There is one [`Protocol`], in several [`Bounds`]. With [`Bounds::sticky`] a message that was sent stays deliverable for
//! ever: duplicates and every order come for free, so it looks for races, but no loss can be seen. With [`Bounds::lossy`]
//! each copy of a message is published, confirmed, delivered, settled or lost, within a budget of faults: so it looks for
//! what stands still. A [`Mutant`] is a mistake that is made on purpose; the tests show that each of them is found.
//!
//! A budget bounds each model, so that it is looked through to its end.

mod bounds;
mod broker;
mod claim;
mod hosted;
mod message;
mod model;
mod mutant;
mod properties;
mod protocol;
mod task;
mod turn;
mod world;

pub use self::bounds::{Bounds, Faults, Place};
pub use self::message::{Body, Message, STRANGER, STRANGERS, Said};
pub use self::model::Action;
pub use self::mutant::Mutant;
pub use self::properties::{ALWAYS, EVENTUALLY, SOMETIMES};
pub use self::protocol::Protocol;
pub use self::world::{Answered, Client, Outside, Saga, Service, Stage, State, StepKey, Task, Work, World};
