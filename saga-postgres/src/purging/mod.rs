//! Purging ended sagas.

pub(super) mod ended;
pub(super) mod purge;
pub(super) mod purge_sagas;
pub(super) mod unclosed;
pub(super) mod whole_sagas;
