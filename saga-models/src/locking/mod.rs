//! A model of semantic locks: two sagas, two entities, and a database whose transactions take advisory locks one after the
//! other, read what is committed, and commit or are lost.
//!
//! It follows the functions of `saga-postgres`: what a transaction locks, when it reads, and what it writes. The rule that ends a
//! ring of waits is [`youngest_in_ring`](saga_core::store::youngest_in_ring), which all stores share.

mod mistake;
mod model;
mod observe;
mod properties;
mod protocol;
mod row;
mod table;
mod transaction;
mod world;

pub use self::mistake::Mistake;
pub use self::model::Action;
pub use self::protocol::Locking;
pub use self::row::{Entities, Row, RowState, Write};
pub use self::table::Table;
pub use self::transaction::{Advisory, Answer, Kind, Phase, Transaction};
pub use self::world::{Broken, Left, Reached, Saga, Stage, World};
