//! What the tests share: a store in a folder of its own, sagas of one step, and bodies that do as they are told.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "every test binary uses its own part of this")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod body;
mod gate;
mod stores;

pub use body::{Body, complete, keep};
pub use gate::{Gate, all};
pub use saga_testkit::one_step::{advanced, begun, completed, definition, member, new_saga, status};
pub use stores::{Error, assert_integrity, create_notes, notes, refused, store, write_note};
