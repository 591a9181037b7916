//! The three services. Each knows its own steps, and the names of the others' events.

mod payments;
mod shipping;
mod stock;

pub use self::payments::payments;
pub use self::shipping::shipping;
pub use self::stock::stock;

/// The service that follows the orders: the others report their steps to it.
pub const FOLLOWER: &str = "shipping";
