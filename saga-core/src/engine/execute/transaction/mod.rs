//! Runs transactional steps: many sagas share a transaction, and a saga runs consecutive steps in one.

mod batch;
mod call_plan;
mod chained_steps;
mod chaining;
mod commit_failures;
mod entry;
mod failure_cause;
mod not_committed;
mod one_call;
mod rerun_policy;
mod savepoints;
mod taken_locks;
mod worker;

pub(crate) use self::worker::Transactions;
