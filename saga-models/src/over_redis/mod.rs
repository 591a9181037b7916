//! A model of reservations whose holds are in Redis: two clients want one unit, one of them asks twice, servers crash, holds
//! expire, and Redis loses everything. One key is released, perhaps before its request. Servers load the keys of SQL into Redis.
//!
//! Each step of the model is one script in Redis or one transaction in SQL. Time is whatever happens next.

mod mistake;
mod model;
mod properties;
mod protocol;
mod world;

pub use self::mistake::Mistake;
pub use self::model::Action;
pub use self::protocol::OverRedis;
pub use self::world::{Hold, Keys, Known, Left, Loader, Task, Token, World};
