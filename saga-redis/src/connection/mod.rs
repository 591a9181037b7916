//! The connection to one Redis server or to a cluster.

mod connection;
mod failure;
mod policy;
mod single;

pub use self::connection::{Answer, Connection};
