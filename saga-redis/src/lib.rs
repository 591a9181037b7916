#![doc = include_str!("../README.md")]

mod connection;
mod contract;
mod epochs;
mod error;
mod keys;
mod locks;
mod options;
mod reply;
mod request;
mod scripts;
mod slot_epochs;
mod tls;
mod token;

pub use self::contract::{Acquired, LockService, LockServiceExt};
pub use self::epochs::{Epochs, MemoryEpochs};
pub use self::error::LockError;
pub use self::locks::RedisLocks;
pub use self::options::RedisOptions;
pub use self::request::{AcquireRequest, HeldLock, TTL_MAX, TTL_MIN};

/// What the reservations over Redis share with the locks. It may change in any version.
#[doc(hidden)]
pub mod __private {
    pub use crate::connection::{Answer, Connection};
    pub use crate::epochs::{EpochTurn, Missed};
    pub use crate::scripts::{BEGIN_EPOCH, Call, Text};
}
