//! The connection to one Redis server or to a cluster.

mod connection;
mod failure;
mod policy;
mod shared_calls;
mod single;

pub use self::connection::{Answer, Connection};
pub(crate) use self::shared_calls::SharedCalls;
