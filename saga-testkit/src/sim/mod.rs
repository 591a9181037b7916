//! The seeded simulation of the whole engine.

pub mod executor;
mod random;

pub use self::random::Random;
