//! Looking at what happens, beside it.

mod rest;
mod watcher;

pub(crate) use rest::{NotAtRest, look_for_rest, wait_for_rest};
pub(crate) use watcher::{Watched, Watcher};
