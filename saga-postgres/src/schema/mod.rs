//! The tables of the runtime: numbered migrations, and indexes that are built while others write.

pub(super) mod migrations;
pub(super) mod online_index;
pub(super) mod schema;
