//! Sagas: how they are kept, listed, migrated and purged.

pub(crate) mod acts;
pub(crate) mod definitions;
pub(crate) mod deleted;
pub(crate) mod listing;
pub(crate) mod purge;
pub(crate) mod purge_kept;
pub(crate) mod sagas;
pub(crate) mod sampling;
pub(crate) mod unclosed;
