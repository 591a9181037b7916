//! Steps that run in a transaction of the store.

mod batch;
mod chained_steps;
mod chaining;
mod commit_failures;
mod entry;
mod failures;
mod order;
mod rerun_policy;
mod savepoints;
mod worker;

pub(crate) use self::worker::Transactions;
