//! Runs the steps without a user function: waits, semantic locks and lists.

mod builtin_steps;
mod for_each;
mod semantic_lock;
mod timer;

pub(crate) use self::builtin_steps::BuiltinSteps;
