//! A TCP proxy between a client and a server that breaks their connections on demand.

mod connection;
mod cut;
mod fault_proxy;
mod traffic;

pub use self::cut::{Cut, Direction};
pub use self::fault_proxy::FaultProxy;
pub use self::traffic::{Counts, Traffic};
