//! Where the epochs of tokens are kept.

mod contract;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod turn;

pub use self::contract::Epochs;
pub use self::memory::MemoryEpochs;
pub use self::turn::{EpochTurn, Missed};
