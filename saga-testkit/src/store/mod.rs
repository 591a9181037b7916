//! The checks of a store, by duty.

pub(crate) mod concurrency;
pub(crate) mod histories;
pub(crate) mod limits;
pub(crate) mod locks;
pub(crate) mod messages;
pub(crate) mod misses;
pub(crate) mod records;
pub(crate) mod sagas;
pub(crate) mod transactions;
pub(crate) mod work;
