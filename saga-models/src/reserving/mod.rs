//! A model of reservations: two clients whose messages are lost, repeated and late, the book of `saga-reservations`, the
//! sweeper, and time.
//!
//! The [`Book`](saga_reservations::Book) of the crate makes each decision. The model adds what the stores do around it.

mod client;
mod mistake;
mod model;
mod properties;
mod protocol;
mod world;

pub use self::client::{Ask, Client, Message};
pub use self::mistake::Mistake;
pub use self::model::Action;
pub use self::protocol::Reserving;
pub use self::world::{Broken, Reached, World};
