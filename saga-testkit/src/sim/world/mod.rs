//! What surrounds the engine: processes that die, the store and the broker as they reach them, and the service outside.

mod archive;
mod broker;
mod consumer;
mod disruptions;
mod fault;
mod forgetful_body;
mod hook;
mod lock_log;
mod outside;
mod purge_log;
mod recorder;
mod replica;
mod report_log;
mod retention_mutants;
mod store;
mod transport;
mod world;

pub(crate) use self::consumer::{Consumer, accept};
pub(crate) use self::disruptions::disrupt;
pub use self::fault::{Fault, Hits};
pub(crate) use self::outside::{Reply, Request};
pub(crate) use self::purge_log::{PurgeLog, saga_in};
pub(crate) use self::recorder::Recorder;
pub(crate) use self::replica::{LEASE, Live, Looked, Replica, Role};
pub(crate) use self::retention_mutants::misdate;
pub(crate) use self::store::SimStore;
pub(crate) use self::world::{Seat, World, input_of};
