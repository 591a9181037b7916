//! Transactions of steps and of the application.

pub(crate) mod batch_steps;
pub(crate) mod keys;
pub(crate) mod publish_in;
pub(crate) mod running_on;
pub(crate) mod start_in;
pub(crate) mod starting;
pub(crate) mod tenants;
pub(crate) mod together;
pub(crate) mod transaction;
pub(crate) mod unknown;
pub(crate) mod waiting;
