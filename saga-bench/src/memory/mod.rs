//! W-tiny: sagas of three steps that write nothing, on the store in memory, beside the same functions called by tasks.
//! What is measured is the engine alone.

mod direct;
mod run;
mod saga;
mod work;

pub(crate) use run::{Options, run};
