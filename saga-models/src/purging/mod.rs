//! A model of purging: a saga that asks another service for a step, the host of this step, and messages that are held back.
//!
//! Here the times themselves are modelled, in ticks: how old a message may be, by how much two clocks differ, and how long
//! sagas, keys and hosted steps are kept. The other models have no time.

mod horizons;
mod message;
mod mistake;
mod model;
mod properties;
mod protocol;
mod world;

pub use self::horizons::Horizons;
pub use self::message::{Body, Held};
pub use self::mistake::Mistake;
pub use self::model::Action;
pub use self::protocol::Purging;
pub use self::world::{Left, Row, Stage, World};
