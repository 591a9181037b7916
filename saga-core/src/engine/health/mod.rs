//! Tracks whether the store and the transport work.

mod monitor;
mod tracker;
mod transport_panic;

pub(crate) use self::monitor::HealthMonitor;
pub use self::tracker::{ComponentHealth, Health};
pub(crate) use self::transport_panic::panicked;
