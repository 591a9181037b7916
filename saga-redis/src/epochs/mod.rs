//! Where the epochs of tokens are kept.

mod contract;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use self::contract::Epochs;
pub use self::memory::MemoryEpochs;
