//! What the tests share: a store in a folder of its own, sagas of one step, and bodies that do as they are told.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "every test binary uses its own part of this")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod gate;
mod stores;

pub use gate::{Gate, all};
pub use saga_testkit::one_step::{advanced, asks_for, begun, completed, definition, member, new_saga, status};
pub use saga_testkit::step_body::keep;
pub use stores::{Body, Error, assert_integrity, complete, create_notes, notes, refused, store, write_note};
