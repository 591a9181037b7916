//! Looking at what happens, beside it.

mod rest;
mod watcher;

pub(crate) use rest::{NotAtRest, come_to_rest, look_for_rest, wait_for_rest};
pub(crate) use watcher::{Watched, Watcher};
