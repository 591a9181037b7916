//! `cargo xtask chaos`: long runs while everything around them breaks.

mod orders;
mod reservations;
mod run;

pub(crate) use self::run::chaos;
