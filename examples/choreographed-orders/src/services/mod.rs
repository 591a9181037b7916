//! The three services. Each knows its own steps, and the names of the others' events.

mod payments;
mod shipping;
mod stock;

pub(crate) use self::payments::payments;
pub(crate) use self::shipping::shipping;
pub(crate) use self::stock::stock;

/// The service that follows the orders: the others report their steps to it.
pub(crate) const FOLLOWER: &str = "shipping";
