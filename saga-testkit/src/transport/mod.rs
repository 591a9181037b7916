//! The checks of a transport, by duty.

pub(crate) mod acknowledge;
mod bench;
pub(crate) mod content;
pub(crate) mod dead_letters;
pub(crate) mod delivery;
pub(crate) mod full_queue;
pub mod messages;
pub(crate) mod ordering;
pub(crate) mod prefetch;
pub(crate) mod publish;

pub use self::bench::Bench;
