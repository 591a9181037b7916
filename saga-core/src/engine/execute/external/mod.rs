//! Runs external steps.

mod attempt;
mod resolve;
mod worker;

pub(crate) use self::worker::ExternalCalls;
