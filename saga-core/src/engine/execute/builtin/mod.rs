//! Steps that the engine does itself: waits, choices, and lists.

mod builtin_steps;
mod for_each;
mod timer;

pub(crate) use self::builtin_steps::BuiltinSteps;
