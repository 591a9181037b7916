//! Runs the steps without a user function: waits and lists.

mod builtin_steps;
mod for_each;
mod timer;

pub(crate) use self::builtin_steps::BuiltinSteps;
