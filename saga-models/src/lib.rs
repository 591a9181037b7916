//! Models of the protocol between the coordinator of a saga and the services that host its steps, for the exhaustive
//! checker [`stateright`].
//!
//! The machine of the runtime, [`saga_core::machine`], makes each decision: what follows from an event, an attempt, a
//! claimed row or a reply. The models add the surroundings: databases whose commits succeed or fail, processes that
//! crash or pause past their lease, a broker, the outbox, the inbox, and external systems.
//!
//! There is one [`Protocol`] with several [`Bounds`]. With [`Bounds::sticky`], a sent message stays deliverable for
//! ever. This gives all duplicates and orders without further states, so these models find races, but no message is
//! ever lost. With [`Bounds::lossy`], each copy of a message is published, confirmed, delivered, settled or lost,
//! within a budget of faults. These models find states in which nothing moves any more. A [`Mutant`] is a planted
//! mistake; the tests show that the checker finds each of them.
//!
//! Four models are of their own: [`purging`] and [`reserving`], which have time, [`locking`], which has the locks of a database, and
//! [`over_redis`], which has holds in a Redis that loses them.
//!
//! A budget bounds each model, so the checker can visit all its states.

mod bounds;
mod broker;
mod claim;
mod hosted;
pub mod locking;
mod message;
mod model;
mod mutant;
pub mod over_redis;
mod properties;
mod protocol;
pub mod purging;
pub mod reserving;
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
