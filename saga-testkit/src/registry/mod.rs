//! The list of all checks: the only place where a check is named, so that a new one reaches every author.

mod checks;
mod messages;
mod store;
mod transactions;
mod transport;

pub use self::store::store_checks;
pub use self::transactions::start_in_checks;
pub use self::transport::transport_checks;
