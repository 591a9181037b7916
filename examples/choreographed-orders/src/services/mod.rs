//! The three services. Each knows its own steps, and the names of the others' events.

mod payments;
mod shipping;
mod stock;

pub(crate) use self::payments::payments;
pub(crate) use self::shipping::{FOLLOWER, shipping};
pub(crate) use self::stock::stock;
