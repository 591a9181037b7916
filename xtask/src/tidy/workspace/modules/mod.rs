//! The modules of each crate, what their names mean, and which file needs which.

mod crates;
mod cuts;
mod graph;
mod import;
mod imports;
mod module;
mod references;
mod resolve;
mod uses;

pub(crate) use self::crates::{Crate, Crates};
pub(crate) use self::cuts::cuts;
pub(crate) use self::graph::{Edge, Graph};
pub(crate) use self::import::Import;
pub(crate) use self::imports::imports;
pub(crate) use self::resolve::ItemId;
