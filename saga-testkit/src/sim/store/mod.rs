//! The store as one process of the simulation reaches it.

mod duties;
mod sim_store;

pub(crate) use self::sim_store::SimStore;
